// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/weight_products.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::kernels {
namespace {

// 64 -> 64 channels, 3x3 with padding 1: the output is one pixel.
struct OnePixel {
  OnePixel(std::int64_t map, std::int64_t stride) : strides{stride, stride} {
    torch::manual_seed(3);
    input = torch::randn({5, 64, map, map});
    weight = torch::randn({64, 64, 3, 3}).requires_grad_();
    output = torch::conv2d(input, weight, {}, stride, 1);
    grad_output = torch::randn_like(output);
  }

  [[nodiscard]] KernelSteps steps() const {
    return {.stride = strides, .padding = ones, .dilation = ones};
  }

  [[nodiscard]] at::Tensor products() const {
    return weight_products(grad_output, input, weight, steps());
  }

  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> ones{1, 1};
  at::Tensor input;
  at::Tensor weight;
  at::Tensor output;
  at::Tensor grad_output;
};

TEST(WeightProducts, AreTheGradient) {
  for (const std::int64_t map : {1, 2, 3}) {
    const OnePixel conv(map, map);
    ASSERT_EQ(conv.output.size(2), 1);
    const auto products = conv.products();
    const auto expected = torch::autograd::grad(
        {conv.output},
        {conv.weight},
        {conv.grad_output})[0];
    EXPECT_TRUE(torch::allclose(products, expected, 1e-4, 1e-5)) << map;
    // Taps in the padding: the first row and column.
    EXPECT_EQ(products.select(2, 0).count_nonzero().item<int>(), 0);
    EXPECT_EQ(products.select(3, 0).count_nonzero().item<int>(), 0);
    EXPECT_NE(
        products.select(3, 1).select(2, 1).count_nonzero().item<int>(),
        0);
  }
}

TEST(WeightProducts, AreNotRoundedByAutocast) {
  const OnePixel conv(2, 2);
  const auto expected = conv.products();
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const auto found = conv.products();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  EXPECT_TRUE(torch::equal(found, expected));
}

TEST(WeightProducts, FitOnePixelAndManyChannels) {
  const auto pixel = torch::zeros({5, 64, 1, 1});
  const auto none = torch::zeros({0, 64, 1, 1});
  const auto weight = torch::zeros({64, 64, 3, 3});
  EXPECT_TRUE(weight_products_fit(pixel, pixel, weight));
  EXPECT_FALSE(weight_products_fit(none, none, weight));
  EXPECT_FALSE(weight_products_fit(torch::zeros({5, 64, 2, 2}), pixel, weight));
  EXPECT_FALSE(weight_products_fit(pixel, pixel, weight.narrow(0, 0, 63)));
  EXPECT_FALSE(weight_products_fit(pixel, pixel, torch::zeros({64, 64, 1, 1})));
}

// Whatever the processor's libraries do: the bits are those of the other way.
TEST(WeightProducts, AreExactWhereATrialWas) {
  const OnePixel conv(2, 2);
  int calls = 0;
  // `scale` of 1: the products themselves.
  const auto try_with = [&](float scale, const std::vector<std::int64_t>& pad) {
    KernelSteps steps = conv.steps();
    steps.padding = pad;
    return weight_products_are_exact(
        conv.grad_output,
        conv.input,
        conv.weight,
        steps,
        [&](const at::Tensor& grads, const at::Tensor& pixels) {
          ++calls;
          EXPECT_GT(pixels.count_nonzero().item<int>(), pixels.numel() / 2);
          return weight_products(grads, pixels, conv.weight, steps) * scale;
        });
  };
  // Shapes that nothing else has: what was found is the whole process's.
  EXPECT_TRUE(try_with(1, {1, 0}));
  EXPECT_TRUE(try_with(1.0000002F, {1, 0}));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(try_with(1.0000002F, {0, 1}));
  EXPECT_FALSE(try_with(1, {0, 1}));
  EXPECT_EQ(calls, 2);
  // Products of another precision: what was found says nothing of them.
  at::Context& context = at::globalContext();
  const auto backend = at::Float32Backend::MKLDNN;
  const auto matmul = at::Float32Op::MATMUL;
  const auto before = context.float32Precision(backend, matmul);
  context.setFloat32MatmulPrecision("medium");
  EXPECT_FALSE(try_with(2, {1, 0}));
  EXPECT_FALSE(try_with(1, {1, 0}));
  EXPECT_EQ(calls, 3);
  context.setFloat32Precision(backend, matmul, before);
  EXPECT_TRUE(try_with(2, {1, 0}));
  EXPECT_EQ(calls, 3);
}

} // namespace
} // namespace lockstep::kernels
