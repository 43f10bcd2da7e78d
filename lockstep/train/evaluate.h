// SPDX-License-Identifier: BSD-3-Clause
//
// How good a model is on a data set: average loss, top-1 and top-5 accuracy.
//   Score score = evaluate(strategy, loader, 10000);
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/data/loader.h"
#include "lockstep/train/sink.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// How many samples of a batch have the right class first, or among the first
/// five (or all, if there are fewer classes).
struct Hits {
  std::int64_t top1 = 0;
  std::int64_t top5 = 0;
};

/// Shape: outputs [N, classes], targets [N] int64 on the same device.
Hits count_hits(const at::Tensor& outputs, const at::Tensor& targets);

/// Sums of losses and hits over batches.
class Scoring {
 public:
  void add(float loss, const Hits& hits, std::int64_t samples);
  /// Averages over what was added; `seconds` is passed on.
  [[nodiscard]] Score score(double seconds) const;

 private:
  double loss_ = 0.0;
  Hits hits_ = {};
  std::int64_t samples_ = 0;
};

/// Runs the first `samples` of the loader's data set through the model, in
/// testing mode and without gradients.
Score evaluate(Strategy& strategy, Loader& loader, std::int64_t samples);

} // namespace lockstep::train
