// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/product_loops.h"

#include "lockstep/kernels/internal/lanes.h"

namespace lockstep::kernels {
namespace {

using internal::Lanes;

// One block of sums: kRows rows of one panel.
template <int kBytes, int kRows>
LOCKSTEP_INLINE void add_block(
    const Product& of,
    const float* a,
    const float* b,
    std::int64_t depth,
    bool is_added,
    float* to) {
  using L = Lanes<kBytes>;
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): Note [One source, ...]
  typename L::Floats sums[kRows][2] = {};
  for (std::int64_t i = 0; i < depth; ++i) {
    const typename L::Floats left = L::load(b + i * of.b_step);
    const typename L::Floats right = L::load(b + i * of.b_step + L::kCount);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      const float number = a[row * of.a_row + i * of.a_step];
      sums[row][0] += number * left;
      sums[row][1] += number * right;
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    float* result = to + row * of.to_row;
    if (is_added) {
      sums[row][0] += L::load(result);
      sums[row][1] += L::load(result + L::kCount);
    }
    L::store(result, sums[row][0]);
    L::store(result + L::kCount, sums[row][1]);
  }
}

// The rows from `row` on, kRows at a time. Returns the first of fewer that are
// left.
template <int kBytes, int kRows>
LOCKSTEP_INLINE std::int64_t add_rows(
    const Product& of,
    std::int64_t row,
    std::int64_t column,
    std::int64_t start) {
  constexpr std::int64_t kPanel = 2 * Lanes<kBytes>::kCount;
  const std::int64_t left = of.depth - start;
  for (; row + kRows <= of.rows; row += kRows) {
    add_block<kBytes, kRows>(
        of,
        of.a + row * of.a_row + start * of.a_step,
        of.b + column / kPanel * of.b_panel + start * of.b_step,
        left < kSumBlock ? left : kSumBlock,
        of.is_added || start > 0,
        of.to + row * of.to_row + column);
  }
  return row;
}

template <int kBytes>
LOCKSTEP_INLINE void product_of(const Product& product) {
  // As many as leave registers for what they are multiplied by.
  constexpr int kBlockRows = kBytes == 64 ? 8 : 4;
  static_assert(kRowStep % kBlockRows == 0);
  constexpr std::int64_t kPanel = 2 * Lanes<kBytes>::kCount;
  static_assert(kChannelStep % kPanel == 0);
  const Product of = product; // no store changes it
  for (std::int64_t column = 0; column < of.columns; column += kPanel) {
    for (std::int64_t start = 0; start < of.depth; start += kSumBlock) {
      const std::int64_t rest =
          add_rows<kBytes, kBlockRows>(of, 0, column, start);
      add_rows<kBytes, 1>(of, rest, column, start);
    }
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): attributes and numbers
#define LOCKSTEP_PRODUCT(NAME, BYTES, TARGET)             \
  struct NAME {                                           \
    TARGET static void multiply(const Product& product) { \
      product_of<BYTES>(product);                         \
    }                                                     \
    static constexpr ProductLoops kTable{                 \
        .panel = 2 * Lanes<BYTES>::kCount,                \
        .multiply = &multiply};                           \
  };

LOCKSTEP_PRODUCT(ProductPlain, 16, )
// NOLINTEND(bugprone-macro-parentheses)
#ifdef __x86_64__
LOCKSTEP_PRODUCT(ProductAvx2, 32, LOCKSTEP_AVX2)
LOCKSTEP_PRODUCT(ProductAvx512, 64, LOCKSTEP_AVX512)
#else
using ProductAvx2 = ProductPlain;
using ProductAvx512 = ProductPlain;
#endif

} // namespace

std::vector<const ProductLoops*> usable_product_loops() {
  return internal::usable_tables(
      &ProductAvx512::kTable,
      &ProductAvx2::kTable,
      &ProductPlain::kTable);
}

const ProductLoops& product_loops() {
  static const ProductLoops& widest = *usable_product_loops().front();
  return widest;
}

} // namespace lockstep::kernels
