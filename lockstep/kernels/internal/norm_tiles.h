// SPDX-License-Identifier: BSD-3-Clause
//
// How batch normalisation divides a tensor. The numbers of a channel lie
//   - in a column, if channels are last or maps have one pixel;
//   - in neighbouring columns of [N, C * pixels], if maps are small;
//   - in planes, pieces of which are rows, if maps are large.
// Tiles are rows of columns small enough for a cache. They depend on the shape
// alone, and each has sums of its own, which are added up in one order: results
// are those of any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "lockstep/kernels/internal/norm_loops.h"

namespace lockstep::kernels {

/// One tile of a tensor.
struct NormTile {
  TileSize size = {};
  /// Units: numbers, from the start of the tensor.
  std::int64_t offset = 0;
  /// Where the first of its sums is among those of all tiles.
  std::int64_t sums_offset = 0;
  /// Of its columns, the first; for a plane its channel.
  std::int64_t column = 0;
};

class NormTiles {
 public:
  /// Those of a tensor [N, C, ...] with one type of numbers without gaps,
  /// packed or with channels last; nullopt for another.
  static std::optional<NormTiles> of(const at::Tensor& x);

  [[nodiscard]] std::int64_t channels() const {
    return columns_ / repeat_;
  }
  /// Numbers of each channel.
  [[nodiscard]] std::int64_t values() const {
    return values_;
  }
  /// Columns of each channel.
  [[nodiscard]] std::int64_t repeat() const {
    return repeat_;
  }
  /// Places for sums: `NormTile::sums_offset` and what follows.
  [[nodiscard]] std::int64_t sum_count() const {
    return blocks() * columns_;
  }

  /// In the threads of LibTorch.
  void for_each(c10::function_ref<void(const NormTile&)> work) const;

  /// Of each channel: all its sums added up, in float64.
  [[nodiscard]] std::vector<double> totals(const float* sums) const;

  /// Of each channel: the sum of the squares of the distances from its mean,
  /// out of those within the tiles.
  [[nodiscard]] std::vector<double> squares(
      const float* sums,
      const float* squares_of_tiles,
      std::span<const double> means) const;

 private:
  // Of each plane.
  [[nodiscard]] std::int64_t pieces() const;
  [[nodiscard]] std::int64_t blocks() const;
  [[nodiscard]] std::int64_t values_of_block(std::int64_t block) const;
  [[nodiscard]] NormTile tile(std::int64_t index) const;
  // Calls `add(channel, place)` for every place of every channel, each channel
  // in one thread and in the order of places.
  template <class Add>
  void for_each_sum(Add add) const;

  std::int64_t values_ = 0;
  std::int64_t rows_ = 0;
  // Columns, or of planes the channels.
  std::int64_t columns_ = 0;
  // Columns of a channel.
  std::int64_t repeat_ = 1;
  // Numbers of a plane; 0 if there are columns.
  std::int64_t plane_ = 0;
};

/// Parameters of columns, out of those of the channels, which must stay.
class ColumnParameters {
 public:
  /// `of_channels` may be null.
  ColumnParameters(const NormTiles& tiles, const float* of_channels);
  ColumnParameters(const ColumnParameters&) = delete; // values_ is its own
  ColumnParameters& operator=(const ColumnParameters&) = delete;
  ~ColumnParameters() = default;

  [[nodiscard]] const float* of(const NormTile& tile) const {
    return values_ == nullptr ? nullptr : values_ + tile.column;
  }

 private:
  std::vector<float> own_;
  const float* values_;
};

} // namespace lockstep::kernels
