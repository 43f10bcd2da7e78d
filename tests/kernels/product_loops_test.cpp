// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/product_loops.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/convolution_case.h"

namespace lockstep::kernels {
namespace {

// Every set of loops that this processor runs, with rows that are no multiple
// of any block, transposed operands, and gaps.
TEST(ProductLoops, OfEveryInstructionSetMultiply) {
  torch::manual_seed(4);
  for (const ProductLoops* loops : usable_product_loops()) {
    for (const std::int64_t rows : {1, 3, 8, 13, 24}) {
      for (const bool is_added : {false, true}) {
        const at::Tensor a = at::randn({40, rows + 3});
        const at::Tensor b = at::randn({40, 64});
        const at::Tensor before = at::randn({rows, 70});
        const at::Tensor found = before.clone();
        loops->multiply(
            {.a = a.const_data_ptr<float>(),
             .a_row = 1,
             .a_step = rows + 3,
             .b = b.const_data_ptr<float>(),
             .b_step = 64,
             .b_panel = loops->panel,
             .to = found.mutable_data_ptr<float>(),
             .to_row = 70,
             .rows = rows,
             .columns = 64,
             .depth = 40,
             .is_added = is_added});
        const at::Tensor product =
            a.narrow(1, 0, rows).t().to(at::kDouble).mm(b.to(at::kDouble));
        const at::Tensor exact =
            is_added ? product + before.narrow(1, 0, 64) : product;
        EXPECT_LT(rms_error(found.narrow(1, 0, 64), exact), 1e-6 * rms(exact))
            << loops->panel << ", " << rows;
        EXPECT_TRUE(at::equal(found.narrow(1, 64, 6), before.narrow(1, 64, 6)));
      }
    }
  }
}

// [rows, 2 * depth] as [rows, depth] of pairs.
std::vector<Pair> pairs_of(const at::Tensor& numbers) {
  const at::Tensor packed = numbers.contiguous();
  const auto* first =
      static_cast<const std::uint16_t*>(packed.const_data_ptr());
  std::vector<Pair> pairs(static_cast<std::size_t>(packed.numel() / 2));
  std::memcpy(pairs.data(), first, pairs.size() * sizeof(Pair));
  return pairs;
}

TEST(ProductLoops, OfPairsMultiply) {
  if (pair_loops() == nullptr) {
    GTEST_SKIP() << "no instructions for bfloat16";
  }
  torch::manual_seed(5);
  constexpr std::int64_t kDepth = 40; // pairs
  constexpr std::int64_t kColumns = 64;
  for (const std::int64_t rows : {1, 8, 13}) {
    const at::Tensor a = at::randn({rows, 2 * kDepth}).to(at::kBFloat16);
    const at::Tensor b = at::randn({2 * kDepth, kColumns}).to(at::kBFloat16);
    const auto left = pairs_of(a);
    std::vector<Pair> right(static_cast<std::size_t>(kDepth * kColumns));
    const auto* from = static_cast<const std::uint16_t*>(b.const_data_ptr());
    for (std::int64_t i = 0; i < kDepth; ++i) {
      pair_loops()->join(
          from + 2 * i * kColumns,
          from + (2 * i + 1) * kColumns,
          kColumns,
          right.data() + i * kColumns);
    }
    const at::Tensor found = at::empty({rows, kColumns});
    multiply(Product<Pair>{
        .a = left.data(),
        .a_row = kDepth,
        .a_step = 1,
        .b = right.data(),
        .b_step = kColumns,
        .b_panel = product_loops().panel,
        .to = found.mutable_data_ptr<float>(),
        .to_row = kColumns,
        .rows = rows,
        .columns = kColumns,
        .depth = kDepth});
    const at::Tensor exact = a.to(at::kDouble).mm(b.to(at::kDouble));
    EXPECT_LT(rms_error(found, exact), 1e-6 * rms(exact)) << rows;
    const at::Tensor rounded = at::empty({rows, kColumns}, at::kBFloat16);
    pair_loops()->round(
        found.const_data_ptr<float>(),
        rows * kColumns,
        static_cast<std::uint16_t*>(rounded.mutable_data_ptr()));
    EXPECT_TRUE(at::equal(rounded, found.to(at::kBFloat16))) << rows;
  }
}

} // namespace
} // namespace lockstep::kernels
