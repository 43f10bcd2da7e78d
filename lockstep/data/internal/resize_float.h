// SPDX-License-Identifier: BSD-3-Clause
//
// Images of another size, in the bits of Python's
//   F.interpolate(x, size=(h, w), mode="bilinear", antialias=True)
// and without LibTorch, whose kernels would wake teams of threads in each
// thread that prepares batches.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/images.h"

namespace lockstep {

/// From one size to another along one dimension: each output is a weighted sum
/// of inputs that lie side by side.
struct ResizeAxis {
  struct Output {
    std::int64_t first_input = 0;
    std::vector<float> weights = {};
  };
  std::vector<Output> outputs = {};
  /// The inputs that are needed; `first_input` counts from `begin`.
  std::int64_t begin = 0;
  std::int64_t end = 0;

  /// PyTorch's weights of the filter "bilinear" with `antialias`.
  ResizeAxis(std::int64_t input_size, std::int64_t output_size);
  /// Of these the outputs from `first` on, `count` of them.
  ResizeAxis(
      std::int64_t input_size,
      std::int64_t output_size,
      std::int64_t first,
      std::int64_t count);
};

/// Resizes images of one shape. Threads: `apply` may run in several at once.
class Resize {
 public:
  /// Errors: throws kInvalidArgument for a size below 1.
  Resize(const ImageShape& from, std::int64_t height, std::int64_t width);

  /// Units: `image` has from().numel() floats, `out` to().numel().
  void apply(const float* image, float* out) const;

  [[nodiscard]] const ImageShape& from() const {
    return from_;
  }
  [[nodiscard]] const ImageShape& to() const {
    return to_;
  }

 private:
  ImageShape from_;
  ImageShape to_;
  ResizeAxis columns_;
  ResizeAxis rows_;
};

} // namespace lockstep
