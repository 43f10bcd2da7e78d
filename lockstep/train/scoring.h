// SPDX-License-Identifier: BSD-3-Clause
//
// Sums of losses and hits, from steps to the averages of an epoch.
//   Scoring scoring;
//   const StepResult result(measure(loss, outputs, targets), samples);
//   scoring.add(result.read());
//   Score score = scoring.score(seconds);
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// One batch in numbers.
struct BatchScore {
  float loss = 0.0F;
  /// Samples with the right class first, or among the first five (or all, if
  /// there are fewer classes).
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
  std::int64_t samples = 0;
};

/// Shape: [3] float64 on the device of `outputs`: the loss, and how many
/// samples have the right class first and among the first five. Loss [],
/// outputs [N, classes], targets [N] int64. Other outputs or targets have no
/// hits: both counts are 0, as they are if targets are no classes.
at::Tensor measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    bool has_classes = true);

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
  /// Losses times samples.
  double loss = 0.0;
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
  std::int64_t samples = 0;

  void add(const BatchScore& batch);
  /// The sums over all ranks. Errors: as `ProcessGroup::sum`.
  [[nodiscard]] Scoring over(const dist::ProcessGroup& group) const;
  /// Averages over what was added; `seconds` is passed on. No accuracy without
  /// classes.
  [[nodiscard]] Score score(double seconds, bool has_classes = true) const;

  friend bool operator==(const Scoring&, const Scoring&) = default;
};

} // namespace lockstep::train
