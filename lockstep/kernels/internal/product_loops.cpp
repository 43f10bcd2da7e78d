// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/product_loops.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "lockstep/kernels/internal/lanes.h"

namespace lockstep::kernels {
namespace {

using internal::Lanes;

// One block of sums: kRows rows of one panel.
template <int kBytes, int kRows>
LOCKSTEP_INLINE void add_block(
    const Product<float>& of,
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

#ifdef __x86_64__
#define LOCKSTEP_PAIRS \
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16,fma")]]

// The same of pairs. A function of its own, since what it calls is for such
// functions only; it is called once for some hundred products.
template <int kBytes, int kRows>
LOCKSTEP_PAIRS void add_block(
    const Product<Pair>& of,
    const Pair* a,
    const Pair* b,
    std::int64_t depth,
    bool is_added,
    float* to) {
  constexpr std::int64_t kCount = Lanes<kBytes>::kCount;
  // NOLINTNEXTLINE(modernize-avoid-c-arrays): Note [One source, ...]
  __m512 sums[kRows][2] = {};
  for (std::int64_t i = 0; i < depth; ++i) {
    const auto left = (__m512bh)_mm512_loadu_si512(b + i * of.b_step);
    const auto right = (__m512bh)_mm512_loadu_si512(b + i * of.b_step + kCount);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      const auto pair = (__m512bh)_mm512_set1_epi32(
          static_cast<int>(a[row * of.a_row + i * of.a_step]));
      sums[row][0] = _mm512_dpbf16_ps(sums[row][0], pair, left);
      sums[row][1] = _mm512_dpbf16_ps(sums[row][1], pair, right);
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    float* result = to + row * of.to_row;
    if (is_added) {
      sums[row][0] += _mm512_loadu_ps(result);
      sums[row][1] += _mm512_loadu_ps(result + kCount);
    }
    _mm512_storeu_ps(result, sums[row][0]);
    _mm512_storeu_ps(result + kCount, sums[row][1]);
  }
}
#endif

// The rows from `row` on, kRows at a time. Returns the first of fewer that are
// left.
template <int kBytes, int kRows, class Number>
LOCKSTEP_INLINE std::int64_t add_rows(
    const Product<Number>& of,
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
        left < kSumBlock<Number> ? left : kSumBlock<Number>,
        of.is_added || start > 0,
        of.to + row * of.to_row + column);
  }
  return row;
}

template <int kBytes, class Number>
LOCKSTEP_INLINE void product_of(const Product<Number>& product) {
  // As many as leave registers for what they are multiplied by.
  constexpr int kBlockRows = kBytes == 64 ? 8 : 4;
  static_assert(kRowStep % kBlockRows == 0);
  constexpr std::int64_t kPanel = 2 * Lanes<kBytes>::kCount;
  static_assert(kChannelStep % kPanel == 0);
  const Product<Number> of = product; // no store changes it
  for (std::int64_t column = 0; column < of.columns; column += kPanel) {
    for (std::int64_t start = 0; start < of.depth; start += kSumBlock<Number>) {
      const std::int64_t rest =
          add_rows<kBytes, kBlockRows>(of, 0, column, start);
      add_rows<kBytes, 1>(of, rest, column, start);
    }
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): attributes and numbers
#define LOCKSTEP_PRODUCT(NAME, BYTES, TARGET)                    \
  struct NAME {                                                  \
    TARGET static void multiply(const Product<float>& product) { \
      product_of<BYTES>(product);                                \
    }                                                            \
    static constexpr ProductLoops kTable{                        \
        .panel = 2 * Lanes<BYTES>::kCount,                       \
        .multiply = &multiply};                                  \
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

#ifdef __x86_64__
struct Avx512Pairs {
  using L = Lanes<64>;

  LOCKSTEP_PAIRS static void multiply(const Product<Pair>& product) {
    product_of<64>(product);
  }
  LOCKSTEP_PAIRS static void join(
      const std::uint16_t* first,
      const std::uint16_t* second,
      std::int64_t count,
      Pair* to) {
    for (std::int64_t i = 0; i < count; i += L::kCount) {
      // A number in the upper half of each lane, as float32 of the same value.
      const auto low = reinterpret_cast<L::Words>(L::load(first + i));
      const auto high = reinterpret_cast<L::Words>(L::load(second + i));
      const L::Words pairs = (low >> 16U) | high;
      __builtin_memcpy(to + i, &pairs, sizeof pairs);
    }
  }
  LOCKSTEP_PAIRS static void
  round(const float* from, std::int64_t count, std::uint16_t* to) {
    for (std::int64_t i = 0; i < count; i += L::kCount) {
      L::store(to + i, L::load(from + i));
    }
  }
  static constexpr PairLoops kTable{
      .multiply = &multiply,
      .join = &join,
      .round = &round};
};
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

const PairLoops* pair_loops() {
#ifdef __x86_64__
  static const bool has_pairs = widest_vectors() == VectorWidth::kAvx512 &&
                                __builtin_cpu_supports("avx512bf16") != 0;
  return has_pairs ? &Avx512Pairs::kTable : nullptr;
#else
  return nullptr;
#endif
}

} // namespace lockstep::kernels
