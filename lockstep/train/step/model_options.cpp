// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/model_options.h"

#include <functional>
#include <numeric>

namespace lockstep::train {

std::int64_t outputs_of(const Dataset& data) {
  const TargetFormat targets = data.target_format();
  return targets.kind == TargetKind::kValues ? targets.numel()
                                             : data.num_classes();
}

ModelOptions model_options(
    std::int64_t outputs,
    std::span<const std::int64_t> shape) {
  if (shape.size() == 3) {
    return {
        .num_classes = outputs,
        .in_channels = shape[0],
        .image_height = shape[1],
        .image_width = shape[2]};
  }
  return {
      .num_classes = outputs,
      .in_channels = std::accumulate(
          shape.begin(),
          shape.end(),
          std::int64_t{1},
          std::multiplies<>()),
      .image_height = 1,
      .image_width = 1};
}

} // namespace lockstep::train
