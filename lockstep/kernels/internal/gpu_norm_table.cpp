// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/gpu_norm_table.h"

#include <algorithm>

#include <ATen/ops/empty.h>

namespace lockstep::kernels {
namespace {

// Those of the kernels' source.
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kBlockThreads = 256;
constexpr std::int64_t kLines = 512;

constexpr std::int64_t kWarpsOfBlock = 4;
constexpr std::int64_t kRowsAtOnce = 1024;

// Fills a large GPU twice.
constexpr std::int64_t kSumBlocks = 264;
constexpr std::int64_t kSumRows = 4;
// More, shorter ones.
constexpr std::int64_t kBlocks = 2112;
constexpr std::int64_t kRows = 2;

std::int64_t blocks_for(std::int64_t work, std::int64_t of_block) {
  return (work + of_block - 1) / of_block;
}

unsigned narrow(std::int64_t count) {
  return static_cast<unsigned>(count);
}

} // namespace

GpuNormTable::GpuNormTable(const at::Tensor& x)
    : device_(x.device()),
      is_float32_(x.scalar_type() == at::kFloat),
      rows_(x.numel() / x.size(1)),
      channels_(static_cast<std::int32_t>(x.size(1))) {}

std::int64_t GpuNormTable::packs() const {
  return channels_ / (kPackBytes / (is_float32_ ? 4 : 2));
}

GpuNormTable::Shares GpuNormTable::shares(
    std::int64_t blocks,
    std::int64_t least) const {
  std::int64_t lanes = 1;
  while (lanes < std::min(packs(), kWarp)) {
    lanes *= 2;
  }
  const std::int64_t lines = kBlockThreads / lanes;
  const std::int64_t columns = blocks_for(packs(), lanes);
  const std::int64_t shared_by = std::clamp<std::int64_t>(
      blocks / columns,
      1,
      blocks_for(rows_, lines * least));
  const std::int64_t rows_each = blocks_for(rows_, shared_by);
  return {
      .grid =
          {.columns = narrow(columns),
           .rows = narrow(blocks_for(rows_, rows_each)),
           .threads_x = narrow(lanes),
           .threads_y = narrow(lines)},
      .rows = rows_each};
}

GpuNormTable::Shares GpuNormTable::shares_for_sums() const {
  return shares(kSumBlocks, kSumRows);
}

GpuNormTable::Shares GpuNormTable::shares() const {
  return shares(kBlocks, kRows);
}

bool GpuNormTable::fits_at_once() const {
  return rows_ <= kRowsAtOnce;
}

GpuGrid GpuNormTable::at_once() const {
  return {
      .columns = narrow(packs()),
      .threads_x = narrow(std::min(kLines, blocks_for(rows_, kWarp) * kWarp))};
}

GpuGrid GpuNormTable::warps() const {
  return {
      .columns = narrow(blocks_for(channels_, kWarpsOfBlock)),
      .threads_x = narrow(kWarp),
      .threads_y = narrow(kWarpsOfBlock)};
}

GpuGrid GpuNormTable::threads() const {
  return {
      .columns = narrow(blocks_for(channels_, kBlockThreads)),
      .threads_x = narrow(kBlockThreads)};
}

at::Tensor GpuNormTable::floats(at::IntArrayRef sizes) const {
  return at::empty(
      sizes,
      at::TensorOptions().dtype(at::kFloat).device(device_));
}

} // namespace lockstep::kernels
