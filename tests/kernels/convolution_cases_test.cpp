// SPDX-License-Identifier: BSD-3-Clause
//
// Which convolutions can be products at all.
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/kernels/internal/convolution_products.h"

namespace lockstep::kernels {
namespace {

TEST(ConvolutionProducts, AreForWhatTheyCanCompute) {
  const std::vector<std::int64_t> ones{1, 1};
  const std::vector<std::int64_t> one{1};
  const std::vector<std::int64_t> zeros{0, 0};
  const KernelSteps steps{.stride = ones, .padding = ones, .dilation = ones};
  const auto x = at::ones({2, 4, 4, 4});
  const auto w = at::ones({3, 4, 3, 3});
  EXPECT_TRUE(ConvolutionProducts::of(x, w, steps));
  EXPECT_FALSE(
      ConvolutionProducts::of(x.to(at::kDouble), w.to(at::kDouble), steps));
  EXPECT_FALSE(
      ConvolutionProducts::of(x.to(at::kHalf), w.to(at::kHalf), steps));
  EXPECT_FALSE(ConvolutionProducts::of(x, w.to(at::kBFloat16), steps));
  EXPECT_FALSE(ConvolutionProducts::of(x.narrow(0, 0, 0), w, steps));
  EXPECT_FALSE(ConvolutionProducts::of(x[0], w[0], steps));
  EXPECT_FALSE(ConvolutionProducts::of(x.narrow(1, 0, 2), w, steps))
      << "groups";
  EXPECT_FALSE(ConvolutionProducts::of(at::ones({2, 4, 5, 5}), w, steps))
      << "many outputs";
  EXPECT_FALSE(ConvolutionProducts::of(
      at::ones({2, 4, 9, 9}),
      at::ones({3, 4, 9, 9}),
      {.stride = ones, .padding = zeros, .dilation = ones}))
      << "many pixels";
  const auto both_alike = ConvolutionProducts::of(
      x,
      w,
      {.stride = one, .padding = one, .dilation = one});
  ASSERT_TRUE(both_alike);
  EXPECT_TRUE(torch::equal(
      both_alike->forward({}),
      ConvolutionProducts::of(x, w, steps)->forward({})));
  const std::vector<std::int64_t> three{1, 1, 1};
  EXPECT_FALSE(ConvolutionProducts::of(
      x,
      w,
      {.stride = three, .padding = one, .dilation = one}));
}

} // namespace
} // namespace lockstep::kernels
