// SPDX-License-Identifier: BSD-3-Clause
//
// Matrix products of float32 where operands lie, with the widest vectors that
// the processor has: for convolutions, which are sums of such products.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::kernels {

/// Columns of a product are a multiple of it, so that numbers of channels are.
inline constexpr std::int64_t kChannelStep = 32;
/// Rows that are worked on together; others are slower.
inline constexpr std::int64_t kRowStep = 8;
/// Products of a sum that are added up before they meet the others: the longer
/// the chain, the larger the error.
inline constexpr std::int64_t kSumBlock = 16;
/// A row of scratch is longer by it: rows that are a power of two apart would
/// share a place in the first cache. Units: numbers.
inline constexpr std::int64_t kRowGap = 16;

/// to = or += a x b, of [rows, depth] and [depth, columns]. A number of `a` is
/// at [row * a_row + i * a_step]; rows of `b` are b_step apart, and panels of
/// its columns b_panel.
struct Product {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_step = 0;
  const float* b = nullptr;
  std::int64_t b_step = 0;
  std::int64_t b_panel = 0;
  float* to = nullptr;
  std::int64_t to_row = 0;
  std::int64_t rows = 0;
  /// A multiple of kChannelStep.
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool is_added = false;
};

/// Threads: any. Nothing is kept: pointers and their memory are the caller's,
/// of any alignment. There are no errors; sizes must be as described.
struct ProductLoops {
  /// Columns of a product that are worked on together: two vectors.
  std::int64_t panel = 0;
  void (*multiply)(const Product& product) = nullptr;
};

/// Those that this processor can run, with the widest vectors first.
std::vector<const ProductLoops*> usable_product_loops();

/// The first of them.
const ProductLoops& product_loops();

} // namespace lockstep::kernels
