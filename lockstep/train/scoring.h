// SPDX-License-Identifier: BSD-3-Clause
//
// Sums of losses and hits, from steps to the averages of an epoch.
//   Scoring scoring;
//   Scoring scoring(metrics);
//   const StepResult result(measure(loss, outputs, targets, metrics), samples);
//   scoring.add(result.read());
//   Score score = scoring.score(metrics, seconds);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// What is measured of a batch.
using Metrics = std::vector<std::shared_ptr<const Metric>>;
/// Some of them.
using MetricSpan = std::span<const std::shared_ptr<const Metric>>;

/// All that they tell, in their order.
std::vector<MetricInfo> infos_of(MetricSpan metrics);

/// Adds `more` to `tables`, as columns of the one of that name if there is one:
/// those that it has already are not added again.
void add_table(std::vector<MetricTable>& tables, MetricTable more);

/// One batch in numbers.
struct BatchScore {
  float loss = 0.0F;
  /// Of all metrics, one after the other.
  std::vector<double> sums = {};
  std::int64_t samples = 0;
};

/// Shape: [1 + sums] float64 on the device of `outputs`: the loss, which is [],
/// and the metrics' sums.
/// Errors: throws what the metrics throw.
at::Tensor measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    MetricSpan metrics);

/// A batch's numbers on their way to the host, which need not wait for them
/// before it queues the next batch. Threads: made and read by one thread.
class StepResult {
 public:
  /// `numbers` as `measure` gives them, for so many samples. They may be
  /// overwritten by later work of the calling thread's current stream.
  StepResult(const at::Tensor& numbers, std::int64_t samples);

  /// Waits for the device.
  [[nodiscard]] BatchScore read() const;

 private:
  at::Tensor numbers_ = {};
  std::int64_t samples_ = 0;
  /// None on the CPU.
  std::optional<c10::Event> arrived_ = {};
};

/// Sums over batches; a plain value, so that a checkpoint can hold it.
struct Scoring {
  Scoring() = default;
  explicit Scoring(MetricSpan metrics);

  /// Losses times samples.
  double loss = 0.0;
  /// Of all metrics, one after the other.
  std::vector<double> sums = {};
  std::int64_t samples = 0;

  /// Errors: throws kInternal for sums of other metrics.
  void add(const BatchScore& batch);
  void add(const Scoring& other);
  /// As it was before the first batch.
  void clear();
  /// The sums over all ranks. Errors: as `ProcessGroup::sum`.
  [[nodiscard]] Scoring over(const dist::ProcessGroup& group) const;
  /// What the metrics say of what was added; the loss is an average. `seconds`
  /// is passed on. Errors: throws what the metrics throw.
  [[nodiscard]] Score score(MetricSpan metrics, double seconds) const;

  friend bool operator==(const Scoring&, const Scoring&) = default;
};

} // namespace lockstep::train
