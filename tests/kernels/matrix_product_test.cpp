// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/matrix_product.h"

#include <random>

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::kernels {
namespace {

using internal::Multiplier;

// The same values in rows, in columns, or as a part of something wider.
at::Tensor in_layout(const at::Tensor& matrix, std::int64_t which) {
  switch (which) {
    case 0:
      return matrix;
    case 1:
      return matrix.t().contiguous().t();
    default:
      return at::cat({matrix, matrix}, 1).narrow(1, 0, matrix.size(1));
  }
}

void expect_close(
    const at::Tensor& found,
    const at::Tensor& exact,
    std::int64_t inner) {
  const double precision = found.scalar_type() == at::kFloat ? 1e-6 : 8e-3;
  const double room = precision * std::sqrt(static_cast<double>(inner)) * 4;
  EXPECT_TRUE(torch::allclose(found.to(at::kDouble), exact, precision, room));
}

TEST(MatrixProduct, IsRightWithAnyStrides) {
  torch::manual_seed(31);
  std::mt19937 engine(31);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  for (int i = 0; i < 300; ++i) {
    const std::int64_t inner = draw(1, 90);
    const auto type = draw(0, 2) == 0 ? at::kBFloat16 : at::kFloat;
    const auto a =
        in_layout(at::randn({draw(1, 90), inner}).to(type), draw(0, 2));
    const auto b =
        in_layout(at::randn({inner, draw(1, 90)}).to(type), draw(0, 2));
    auto bias = draw(0, 1) == 0 ? at::Tensor() : at::randn({1}).to(type);
    if (bias.defined()) { // one number in all columns, or numbers with gaps
      bias = draw(0, 1) == 0 ? bias.expand({b.size(1)})
                             : at::randn({b.size(1), 2}).to(type).select(1, 0);
    }
    auto exact = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    if (bias.defined()) {
      exact += bias;
    }
    expect_close(matrix_product(a, b, Sums::kInOneChain, bias), exact, inner);
    EXPECT_TRUE(torch::equal(
        matrix_product(a, b, Sums::kInOneChain, bias),
        matrix_product(a, b, Sums::kInOneChain, bias)));
    if (type == at::kFloat && internal::has_inner_product()) {
      expect_close(internal::inner_product(a, b, bias), exact, inner);
    }
  }
}

// Another release without the operator would be slower, and nobody would know.
TEST(MatrixProduct, FindsTheInnerProductOfLibTorchsWheel) {
  EXPECT_EQ(internal::has_inner_product(), at::hasMKLDNN());
}

TEST(MatrixProduct, IsChosenByTheProcessor) {
  EXPECT_EQ(internal::multiplier_for(false, 0x1A, true), Multiplier::kMm);
  EXPECT_EQ(internal::multiplier_for(true, 0x1A, false), Multiplier::kMm);
  EXPECT_EQ(
      internal::multiplier_for(true, 0x19, true),
      Multiplier::kInnerProductForRows);
  EXPECT_EQ(
      internal::multiplier_for(true, 0x1A, true),
      Multiplier::kInnerProduct);
}

TEST(MatrixProduct, ObeysTheSwitchOfOneDnn) {
  torch::manual_seed(32);
  const auto a = at::randn({64, 96});
  const auto b = at::randn({96, 80});
  at::globalContext().setUserEnabledMkldnn(false);
  const auto found = matrix_product(a, b, Sums::kInOneChain);
  at::globalContext().setUserEnabledMkldnn(true);
  EXPECT_TRUE(torch::equal(found, at::mm(a, b)));
}

TEST(MatrixProduct, InBlocksIsLibTorchs) {
  torch::manual_seed(34);
  const auto a = at::randn({64, 96});
  const auto b = at::randn({96, 80});
  EXPECT_TRUE(
      torch::equal(matrix_product(a, b, Sums::kInBlocks), at::mm(a, b)));
}

TEST(MatrixProduct, IsNotRoundedByAutocastAndHasNoGradient) {
  torch::manual_seed(33);
  const auto a = at::randn({64, 96}).requires_grad_();
  const auto b = at::randn({96, 80});
  const auto expected = matrix_product(a, b, Sums::kInOneChain);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto found = matrix_product(a, b, Sums::kInOneChain);
  const auto by_one_dnn =
      internal::has_inner_product() ? internal::inner_product(a, b, {}) : found;
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_TRUE(torch::equal(found, expected));
  EXPECT_EQ(by_one_dnn.scalar_type(), at::kFloat);
  EXPECT_FALSE(by_one_dnn.requires_grad());
}

} // namespace
} // namespace lockstep::kernels
