// SPDX-License-Identifier: BSD-3-Clause
//
// Sums of losses and hits, from steps to the averages of an epoch.
//   Scoring scoring;
//   scoring.add(measure(loss, outputs, targets).read());
//   Score score = scoring.score(seconds);
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/base/world.h"
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

/// One batch as the device computed it; reading it waits for the device.
struct StepResult {
  /// Shape: [], the average over the batch.
  at::Tensor loss = {};
  /// Shape: [2] int64: top 1, top 5.
  at::Tensor hits = {};
  std::int64_t samples = 0;

  [[nodiscard]] BatchScore read() const;
};

/// Shape: loss [], outputs [N, classes], targets [N] int64 on one device, for N
/// samples. Other outputs or targets have no hits: both counts are 0.
StepResult measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    std::int64_t samples);

/// Sums over batches; a plain value, so that a checkpoint can hold it.
struct Scoring {
  /// Losses times samples.
  double loss = 0.0;
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
  std::int64_t samples = 0;

  void add(const BatchScore& batch);
  /// The sums over all ranks. Errors: as `World::sum`.
  [[nodiscard]] Scoring over(World& world) const;
  /// Averages over what was added; `seconds` is passed on.
  [[nodiscard]] Score score(double seconds) const;

  friend bool operator==(const Scoring&, const Scoring&) = default;
};

} // namespace lockstep::train
