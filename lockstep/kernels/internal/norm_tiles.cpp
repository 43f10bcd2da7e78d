// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/norm_tiles.h"

#include <algorithm>

#include <ATen/ceil_div.h>

#include "lockstep/kernels/internal/threads.h"

namespace lockstep::kernels {
namespace {

// Few enough that a sum in float32 loses nothing that counts.
constexpr std::int64_t kTileRows = 32;
constexpr std::int64_t kPiece = 512;
constexpr std::int64_t kMaxColumns = 512;
// Planes from here on are worth a row of their own, and smaller ones if there
// are too few images to share the parameters of each column.
constexpr std::int64_t kLargePlane = 64;
constexpr std::int64_t kFewImages = 16;
// Numbers that are worth another thread, as LibTorch's own loops have it.
constexpr std::int64_t kGrain = 32'768;
constexpr std::int64_t kChannelGrain = 64;

} // namespace

std::optional<NormTiles> NormTiles::of(const at::Tensor& x) {
  if (x.dim() < 2 || x.numel() == 0 || x.layout() != at::kStrided ||
      !x.is_contiguous(x.suggest_memory_format())) {
    return std::nullopt;
  }
  NormTiles tiles;
  const std::int64_t channels = x.size(1);
  tiles.values_ = x.numel() / channels;
  const std::int64_t pixels = tiles.values_ / x.size(0);
  tiles.columns_ = channels;
  if (pixels == 1 || !x.is_contiguous()) {
    tiles.rows_ = tiles.values_;
  } else if (pixels < kLargePlane && x.size(0) >= kFewImages) {
    tiles.rows_ = x.size(0);
    tiles.repeat_ = pixels;
    tiles.columns_ = channels * pixels;
  } else {
    tiles.rows_ = x.size(0);
    tiles.plane_ = pixels;
  }
  return tiles;
}

std::int64_t NormTiles::pieces() const {
  return at::ceil_div(plane_, kPiece);
}

std::int64_t NormTiles::blocks() const {
  return plane_ > 0 ? rows_ * pieces() : at::ceil_div(rows_, kTileRows);
}

std::int64_t NormTiles::values_of_block(std::int64_t block) const {
  return plane_ > 0 ? std::min(kPiece, plane_ - block % pieces() * kPiece)
                    : std::min(kTileRows, rows_ - block * kTileRows);
}

NormTile NormTiles::tile(std::int64_t index) const {
  if (plane_ > 0) {
    const std::int64_t plane = index / pieces();
    const std::int64_t channel = plane % columns_;
    const std::int64_t block = plane / columns_ * pieces() + index % pieces();
    return {
        .size =
            {.rows = 1, .columns = values_of_block(block), .is_plane = true},
        .offset = plane * plane_ + index % pieces() * kPiece,
        .sums_offset = block * columns_ + channel,
        .column = channel};
  }
  const std::int64_t across = at::ceil_div(columns_, kMaxColumns);
  const std::int64_t block = index / across;
  const std::int64_t column = index % across * kMaxColumns;
  return {
      .size =
          {.rows = values_of_block(block),
           .columns = std::min(kMaxColumns, columns_ - column),
           .stride = columns_},
      .offset = block * kTileRows * columns_ + column,
      .sums_offset = block * columns_ + column,
      .column = column};
}

void NormTiles::for_each(c10::function_ref<void(const NormTile&)> work) const {
  const std::int64_t across =
      plane_ > 0 ? columns_ : at::ceil_div(columns_, kMaxColumns);
  const std::int64_t count = blocks() * across;
  const std::int64_t numbers =
      plane_ > 0 ? std::min(plane_, kPiece)
                 : kTileRows * std::min(columns_, kMaxColumns);
  in_threads(
      count,
      at::ceil_div(kGrain, numbers),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          work(tile(i));
        }
      });
}

template <class Add>
void NormTiles::for_each_sum(Add add) const {
  in_threads(
      channels(),
      kChannelGrain,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t block = 0; block < blocks(); ++block) {
          const std::int64_t row = block * columns_;
          const auto values = static_cast<double>(values_of_block(block));
          for (std::int64_t c = begin; c < end; ++c) {
            for (std::int64_t i = 0; i < repeat_; ++i) {
              add(c, row + c * repeat_ + i, values);
            }
          }
        }
      });
}

std::vector<double> NormTiles::totals(const float* sums) const {
  std::vector<double> result(channels());
  for_each_sum([&](std::int64_t channel, std::int64_t place, double) {
    result[channel] += sums[place];
  });
  return result;
}

std::vector<double> NormTiles::squares(
    const float* sums,
    const float* squares_of_tiles,
    std::span<const double> means) const {
  std::vector<double> result(channels());
  for_each_sum([&](std::int64_t channel, std::int64_t place, double values) {
    const double distance = sums[place] - values * means[channel];
    result[channel] += squares_of_tiles[place] + distance * distance / values;
  });
  return result;
}

ColumnParameters::ColumnParameters(
    const NormTiles& tiles,
    const float* of_channels)
    : values_(of_channels) {
  if (of_channels == nullptr || tiles.repeat() == 1) {
    return;
  }
  own_.resize(tiles.channels() * tiles.repeat());
  for (std::int64_t c = 0; c < tiles.channels(); ++c) {
    std::fill_n(
        own_.data() + c * tiles.repeat(),
        tiles.repeat(),
        of_channels[c]);
  }
  values_ = own_.data();
}

} // namespace lockstep::kernels
