// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/evaluate.h"

#include <chrono>
#include <optional>
#include <utility>

#include "lockstep/data/samplers.h"

namespace lockstep::train {

Score evaluate(
    Strategy& strategy,
    Loader<Batch>& loader,
    std::int64_t samples,
    const dist::ProcessGroup& group) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const DistributedSampler sampler(
      samples,
      {.num_replicas = group.size(),
       .rank = group.rank(),
       .shuffle = false,
       .exact = true});
  loader.start_epoch(sampler.indices(), /*epoch=*/0);
  strategy.begin_test();
  Scoring scoring(strategy.task().metrics);
  // Read once the next batch is queued, so that no device waits for the host.
  // Until then an accelerator may read the batch's memory.
  std::optional<std::pair<StepResult, Batch>> last;
  while (const auto batch = loader.next()) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the condition checks
    std::pair now{strategy.test(*batch), *batch};
    if (last) {
      scoring.add(last->first.read());
    }
    last = std::move(now);
  }
  if (last) {
    scoring.add(last->first.read());
  }
  const Scoring all = scoring.over(group);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return all.score(strategy.task().metrics, elapsed.count());
}

} // namespace lockstep::train
