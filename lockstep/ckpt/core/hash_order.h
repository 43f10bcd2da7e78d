// SPDX-License-Identifier: BSD-3-Clause
//
// Hashes in order, of one place each. Good hashes are spread evenly, so that
// each goes nearly to its place at once; a file that makes them collide only
// makes them be sorted.
//   const HashOrder order(hashes);
//   for (const auto& entry : order.near(hash)) { ... }
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::ckpt {

/// Which hash is where. Threads: const calls are safe.
class HashOrder {
 public:
  /// One of the hashes.
  struct Entry {
    std::uint64_t hash = 0;
    /// Index of the hash as it was given.
    std::size_t place = 0;
  };

  HashOrder() = default;
  explicit HashOrder(std::span<const std::uint64_t> hashes);

  /// By hash and, of equal ones, by place, until the caller reorders these.
  [[nodiscard]] std::span<Entry> entries() noexcept {
    return entries_;
  }
  /// True if two of the hashes are equal.
  [[nodiscard]] bool has_equal() const noexcept;
  /// The entries of `hash` and some of the others, in order.
  [[nodiscard]] std::span<const Entry> near(std::uint64_t hash) const noexcept;

 private:
  [[nodiscard]] std::size_t bucket_of(std::uint64_t hash) const noexcept {
    return hash >> shift_;
  }

  // Where the hashes with the same first bits begin; one more, for the end.
  std::vector<std::size_t> starts_;
  int shift_ = 0;
  std::vector<Entry> entries_;
};

} // namespace lockstep::ckpt
