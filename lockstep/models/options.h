// SPDX-License-Identifier: BSD-3-Clause
//
// What a model is adapted to.
#pragma once

#include <cstdint>

namespace lockstep {

/// Ends of a model.
struct ModelOptions {
  /// Units: classes, the width of the last layer.
  std::int64_t num_classes = 1000;
  /// Units: channels of the input images.
  std::int64_t in_channels = 3;
  /// Units: pixels of the input images. Only `mlp` is built for one size.
  std::int64_t image_height = 28;
  std::int64_t image_width = 28;
};

} // namespace lockstep
