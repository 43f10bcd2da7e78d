// SPDX-License-Identifier: BSD-3-Clause
//
// Matrix products where operands lie, with the widest vectors that the
// processor has: for convolutions, which are sums of such products. Results are
// float32, operands float32 or, where the processor multiplies them, pairs of
// bfloat16 whose two products are one step of a sum.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

namespace lockstep::kernels {

/// Columns of a product are a multiple of it, so that numbers of channels are.
inline constexpr std::int64_t kChannelStep = 32;
/// Rows that are worked on together; others are slower.
inline constexpr std::int64_t kRowStep = 8;
/// A row of scratch is longer by it: rows that are a power of two apart would
/// share a place in the first cache. Units: numbers.
inline constexpr std::int64_t kRowGap = 16;

/// Two numbers of bfloat16 beside each other: in the inner dimension of a
/// product.
using Pair = std::uint32_t;

/// Steps of a sum that are made before it meets the others: the longer the
/// chain, the larger the error, which rounding to bfloat16 hides.
template <class Number>
inline constexpr std::int64_t kSumBlock =
    std::is_same_v<Number, Pair> ? 64 : 16;
/// What a tensor has in memory that is multiplied as `Number`: bfloat16 of a
/// Pair.
template <class Number>
using Stored =
    std::conditional_t<std::is_same_v<Number, Pair>, std::uint16_t, float>;
/// How many of them are a Number.
template <class Number>
inline constexpr std::int64_t kStored = std::is_same_v<Number, Pair> ? 2 : 1;

/// to = or += a x b, of [rows, depth] and [depth, columns]. A number of `a` is
/// at [row * a_row + i * a_step]; rows of `b` are b_step apart, and panels of
/// its columns b_panel. Of pairs all of these count pairs, but `to` has one
/// number for each column.
template <class Number>
struct Product {
  const Number* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_step = 0;
  const Number* b = nullptr;
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
  void (*multiply)(const Product<float>& product) = nullptr;
};

/// Those that this processor can run, with the widest vectors first.
std::vector<const ProductLoops*> usable_product_loops();

/// The first of them.
const ProductLoops& product_loops();

/// Threads: as ProductLoops.
struct PairLoops {
  /// With the panel of product_loops().
  void (*multiply)(const Product<Pair>& product) = nullptr;
  /// One number of each in a pair. `count`: a multiple of kChannelStep.
  void (*join)(
      const std::uint16_t* first,
      const std::uint16_t* second,
      std::int64_t count,
      Pair* to) = nullptr;
  /// Rounds to bfloat16. `count`: likewise.
  void (*round)(const float* from, std::int64_t count, std::uint16_t* to) =
      nullptr;
};

/// Null if this processor has no instruction for pairs.
const PairLoops* pair_loops();

inline void multiply(const Product<float>& product) {
  product_loops().multiply(product);
}

/// Only where there are pair_loops().
inline void multiply(const Product<Pair>& product) {
  pair_loops()->multiply(product);
}

} // namespace lockstep::kernels
