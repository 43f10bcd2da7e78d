// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/evaluate.h"

#include <chrono>
#include <vector>

namespace lockstep::train {

Score evaluate(
    Strategy& strategy,
    Loader& loader,
    std::int64_t samples,
    World& world) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<std::int64_t> order;
  for (std::int64_t i = world.rank(); i < samples; i += world.size()) {
    order.push_back(i);
  }
  loader.start_epoch(order, /*epoch=*/0);
  strategy.begin_test();
  Scoring scoring;
  while (const auto batch = loader.next()) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the condition checks
    scoring.add(strategy.test(*batch).read());
  }
  const Scoring all = scoring.over(world);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return all.score(elapsed.count());
}

} // namespace lockstep::train
