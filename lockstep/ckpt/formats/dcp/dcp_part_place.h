// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of a chunk lie in its tensor, both row by row.
//   const PartPlace place({3, 2}, {0, 1}, {3, 1}, 4); // the second column
//   place.put(0, column, 0, matrix);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// A box of a tensor. What comes first in it comes first in the tensor.
class PartPlace {
 public:
  /// Units: elements of `element` bytes. The box has elements and lies inside
  /// of a tensor of the sizes `whole`, whose bytes fit in 63 bits.
  PartPlace(
      const std::vector<std::int64_t>& whole,
      const std::vector<std::int64_t>& offsets,
      const std::vector<std::int64_t>& sizes,
      std::uint64_t element);

  /// Bytes of the tensor: the first one of the box.
  [[nodiscard]] std::uint64_t begin() const {
    return begin_;
  }
  /// The one behind its last.
  [[nodiscard]] std::uint64_t end() const {
    return end_;
  }
  /// True if nothing else lies between those.
  [[nodiscard]] bool is_one_run() const {
    return end_ - begin_ == bytes_;
  }
  /// How many bytes of the box lie in front of byte `at` of the tensor.
  [[nodiscard]] std::uint64_t before(std::uint64_t at) const;

  /// Copies bytes of the box, from its byte `at` on, into those bytes of the
  /// tensor that begin with byte `front`.
  void put(
      std::uint64_t at,
      ByteSpan bytes,
      std::uint64_t front,
      std::span<std::byte> out) const;

 private:
  struct Dimension {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    // Units: bytes of the tensor, and of the box.
    std::uint64_t stride = 0;
    std::uint64_t box_stride = 0;
  };

  // Byte of the tensor that is byte `at` of the box.
  [[nodiscard]] std::uint64_t place_of(std::uint64_t at) const;

  std::vector<Dimension> dimensions_;
  // Units: bytes of the box, of which `run_` each lie together in the tensor.
  std::uint64_t bytes_ = 0;
  std::uint64_t run_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

} // namespace lockstep::ckpt::internal
