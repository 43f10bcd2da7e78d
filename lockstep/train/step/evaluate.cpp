// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/evaluate.h"

#include <chrono>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"
#include "lockstep/train/step/loss_place.h"

namespace lockstep::train {
namespace {

// Tables are for people: those that cannot be made, because a metric of the
// program's own has other rows than there are names, are left out.
std::vector<MetricTable> tables_for_people(
    MetricSpan metrics,
    std::span<const double> sums,
    std::span<const std::string> names) {
  std::vector<MetricTable> tables;
  for (const auto& metric : metrics) {
    const auto own = sums.first(static_cast<std::size_t>(metric->size()));
    sums = sums.subspan(own.size());
    try {
      for (MetricTable& table : metric->tables(own, names)) {
        add_table(tables, std::move(table));
      }
    } catch (const Exception&) {
      continue;
    }
  }
  return tables;
}

// `done`: samples of this rank before the batch.
StepResult tested(Strategy& strategy, const Batch& batch, std::int64_t done) {
  try {
    return strategy.test(batch);
  } catch (const Exception& error) {
    raise_with_place(
        error,
        format("in the test, samples {} to {}", done + 1, done + batch.size()));
  }
}

} // namespace

Score evaluate(
    Strategy& strategy,
    Loader<Batch>& loader,
    std::int64_t samples,
    const dist::ProcessGroup& group,
    std::span<const std::string> names) {
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
  Scoring scoring(strategy.test_metrics());
  // Read once the next batch is queued, so that no device waits for the host.
  // Until then an accelerator may read the batch's memory.
  std::optional<std::pair<StepResult, Batch>> last;
  std::int64_t done = 0;
  while (const auto batch = loader.next()) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the condition checks
    std::pair now{tested(strategy, *batch, done), *batch};
    done += batch->size();
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
  Score score = all.score(strategy.task().metrics, elapsed.count());
  score.tables = tables_for_people(strategy.test_metrics(), all.sums, names);
  return score;
}

} // namespace lockstep::train
