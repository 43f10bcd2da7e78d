// SPDX-License-Identifier: BSD-3-Clause
//
// A batch as the kernels of gpu_norm.cpp see it: a table with a column for each
// channel, and how blocks of threads share it.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/kernels/internal/gpu_program.h"

namespace lockstep::kernels {

class GpuNormTable {
 public:
  /// Units: bytes that a thread looks at at once, some neighbouring channels.
  static constexpr std::int64_t kPackBytes = 16;

  /// float32 or bfloat16 [N, C, ...] with channels last.
  explicit GpuNormTable(const at::Tensor& x);

  [[nodiscard]] c10::Device device() const {
    return device_;
  }
  [[nodiscard]] bool is_float32() const {
    return is_float32_;
  }
  [[nodiscard]] std::int64_t rows() const {
    return rows_;
  }
  [[nodiscard]] std::int32_t channels() const {
    return channels_;
  }

  /// Blocks, and how many rows each takes.
  struct Shares {
    GpuGrid grid = {};
    std::int64_t rows = 0;
  };
  /// For sums, one of each block. Results depend on it.
  [[nodiscard]] Shares shares_for_sums() const;
  /// For what has no sums.
  [[nodiscard]] Shares shares() const;

  /// Whether one block for a pack of channels is enough: each thread has few
  /// rows. Results depend on it.
  [[nodiscard]] bool fits_at_once() const;
  [[nodiscard]] GpuGrid at_once() const;

  /// A warp for each channel, or a thread.
  [[nodiscard]] GpuGrid warps() const;
  [[nodiscard]] GpuGrid threads() const;

  /// float32 on the device.
  [[nodiscard]] at::Tensor floats(at::IntArrayRef sizes) const;

 private:
  [[nodiscard]] std::int64_t packs() const;
  // Each thread takes at least `least` rows; not many more than `blocks`.
  [[nodiscard]] Shares shares(std::int64_t blocks, std::int64_t least) const;

  c10::Device device_;
  bool is_float32_;
  std::int64_t rows_;
  std::int32_t channels_;
};

} // namespace lockstep::kernels
