// SPDX-License-Identifier: BSD-3-Clause
//
// Direct convolutions beside float64 and LibTorch's kernels, on shapes that a
// generator with a fixed seed draws.
#include "lockstep/kernels/internal/direct_convolution.h"

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/kernels/internal/product_loops.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "tests/kernels/convolution_case.h"

namespace lockstep::kernels {
namespace {

constexpr int kDirectCases = 2000;
constexpr auto kLast = at::MemoryFormat::ChannelsLast;

// Channels last also where all layouts are one.
at::Tensor random_map(at::IntArrayRef sizes) {
  return at::randn(sizes).to(at::kFloat, false, false, kLast);
}

class DrawDirect {
 public:
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

  // None if there are no outputs, or too many.
  std::optional<ConvolutionCase> some() {
    const std::int64_t in = kChannelStep * from(1, 2);
    const std::int64_t out = kChannelStep * from(1, 2);
    ConvolutionCase drawn{
        .input = random_map({from(1, 19), in, from(1, 8), from(1, 8)}),
        .weight = random_map({out, in, from(1, 5), from(1, 5)}),
        .strides = {from(1, 3), from(1, 3)},
        .paddings = {from(0, 3), from(0, 3)},
        .dilations = {from(1, 3), from(1, 2)}};
    if (from(0, 1) == 1) {
      drawn.bias = at::randn({out});
    }
    const auto direct =
        DirectConvolution::of(drawn.input, drawn.weight, drawn.steps());
    if (!direct) {
      return std::nullopt;
    }
    drawn.grad_output = random_map(direct->forward(drawn.bias).sizes());
    drawn = with_other_strides(std::move(drawn));
    if (from(0, 2) == 0 && pair_loops() != nullptr) {
      drawn = drawn.to(at::kBFloat16);
    }
    if (from(0, 3) == 0) {
      drawn.input = with_offset(drawn.input);
      drawn.weight = with_offset(drawn.weight);
      drawn.grad_output = with_offset(drawn.grad_output);
    }
    return drawn;
  }

 private:
  // A part of a larger tensor, at an odd place.
  static at::Tensor with_offset(const at::Tensor& tensor) {
    return at::empty({tensor.numel() + 1}, tensor.options())
        .as_strided(tensor.sizes(), tensor.strides(), 1)
        .copy_(tensor);
  }

  // One of input and weight decides about the layout; gradients have any.
  ConvolutionCase with_other_strides(ConvolutionCase drawn) {
    if (from(0, 2) == 0 && drawn.weight.size(2) * drawn.weight.size(3) > 1 &&
        drawn.input.size(2) * drawn.input.size(3) > 1) {
      drawn.weight = drawn.weight.contiguous();
    }
    if (from(0, 2) == 0) {
      drawn.grad_output = drawn.grad_output.contiguous();
    }
    return drawn;
  }

  std::mt19937 engine_{29};
};

TEST(DirectConvolution, IsNearFloat64) {
  torch::manual_seed(1);
  DrawDirect draw;
  for (int done = 0; done < kDirectCases;) {
    const auto drawn = draw.some();
    if (!drawn) {
      continue;
    }
    ++done;
    const auto exact = drawn->libtorchs(at::kDouble);
    const auto ours = drawn->computed_by<DirectConvolution>();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].sizes(), exact[i].sizes()) << drawn->text();
      ASSERT_TRUE(ours[i].is_contiguous(kLast)) << drawn->text();
      ASSERT_EQ(ours[i].scalar_type(), drawn->input.scalar_type());
      ASSERT_LE(
          rms_error(ours[i], exact[i]),
          tolerance(ours[i]) * rms(exact[i]))
          << i << ": " << drawn->text();
    }
  }
}

struct DirectLayer {
  std::int64_t in;
  std::int64_t out;
  std::int64_t map;
  std::int64_t kernel;
  std::int64_t stride;
};

// With as much padding as keeps the size of a map if the stride is 1.
ConvolutionCase of_layer(const DirectLayer& layer, std::int64_t batch) {
  const std::int64_t padding = layer.kernel / 2;
  const std::int64_t outputs = (layer.map - 1) / layer.stride + 1;
  return {
      .input = random_map({batch, layer.in, layer.map, layer.map}).relu(),
      .weight =
          random_map({layer.out, layer.in, layer.kernel, layer.kernel}) / 24,
      .grad_output = random_map({batch, layer.out, outputs, outputs}),
      .strides = {layer.stride, layer.stride},
      .paddings = {padding, padding}};
}

// Where it is used: layers of ResNets and VGGs.
void expect_as_exact(at::ScalarType type, std::int64_t batch) {
  int compared = 0;
  for (const DirectLayer& layer : std::vector<DirectLayer>{
           {64, 128, 7, 3, 2},
           {64, 128, 7, 1, 2},
           {64, 128, 8, 3, 2},
           {128, 256, 4, 3, 2},
           {128, 256, 4, 1, 2},
           {256, 256, 2, 3, 1},
           {256, 512, 2, 3, 2},
           {512, 512, 1, 3, 1},
           {512, 128, 4, 1, 1},
           {1024, 256, 2, 1, 1},
           {512, 2048, 1, 1, 1}}) {
    const ConvolutionCase one = of_layer(layer, batch).to(type);
    const auto exact = one.libtorchs(at::kDouble);
    const auto theirs = one.libtorchs(type);
    const auto ours = one.computed_by<DirectConvolution>();
    const auto direct =
        DirectConvolution::of(one.input, one.weight, one.steps());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].strides(), theirs[i].strides()) << one.text();
      if (direct->is_better(static_cast<Pass>(i))) {
        ++compared;
        EXPECT_LE(
            rms_error(ours[i], exact[i]),
            2 * rms_error(theirs[i], exact[i]))
            << i << ": " << one.text();
      }
    }
  }
  EXPECT_GE(compared, type == at::kFloat ? 24 : 12);
}

TEST(DirectConvolution, IsAsExactAsLibTorchs) {
  if (product_loops().panel < 16) {
    GTEST_SKIP() << "without AVX2 LibTorch's kernels are used";
  }
  torch::manual_seed(2);
  expect_as_exact(at::kFloat, 128);
  expect_as_exact(at::kFloat, 4);
  if (pair_loops() != nullptr &&
      bfloat16_products() == Bfloat16Products::kPairs) {
    expect_as_exact(at::kBFloat16, 128);
    expect_as_exact(at::kBFloat16, 4);
  }
}

TEST(DirectConvolution, HasTheSameBitsWithAnyNumberOfThreads) {
  torch::manual_seed(3);
  const ConvolutionCase floats = of_layer({96, 160, 5, 3, 2}, 75);
  const int threads = at::get_num_threads();
  for (const ConvolutionCase& one : {floats, floats.to(at::kBFloat16)}) {
    if (!DirectConvolution::of(one.input, one.weight, one.steps())) {
      continue;
    }
    at::set_num_threads(1);
    const auto alone = one.computed_by<DirectConvolution>();
    at::set_num_threads(4);
    const auto together = one.computed_by<DirectConvolution>();
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(at::equal(alone[i], together[i])) << i << one.text();
    }
  }
  at::set_num_threads(threads);
}

TEST(DirectConvolution, TakesOnlyWhatItCanCompute) {
  const ConvolutionCase one = of_layer({64, 64, 4, 3, 2}, 64);
  const auto is_taken = [&](const at::Tensor& input,
                            const at::Tensor& weight,
                            const KernelSteps& steps) {
    return DirectConvolution::of(input, weight, steps).has_value();
  };
  const at::Tensor& x = one.input;
  const at::Tensor& w = one.weight;
  const std::vector<std::int64_t> none{0, 0};
  EXPECT_TRUE(is_taken(x, w, one.steps()));
  EXPECT_FALSE(is_taken(x.contiguous(), w.contiguous(), one.steps()));
  EXPECT_EQ(
      is_taken(x.to(at::kBFloat16), w.to(at::kBFloat16), one.steps()),
      pair_loops() != nullptr);
  EXPECT_FALSE(is_taken(x.to(at::kBFloat16), w, one.steps()));
  EXPECT_FALSE(is_taken(x.to(at::kDouble), w, one.steps()));
  EXPECT_FALSE(is_taken(x.narrow(1, 0, 60), w, one.steps()));
  EXPECT_FALSE(is_taken(x.narrow(1, 0, 32), w, one.steps())) << "groups";
  EXPECT_FALSE(is_taken(x.narrow(0, 0, 0), w, one.steps()));
  EXPECT_FALSE(is_taken(x[0], w, one.steps()));
  EXPECT_FALSE(is_taken(random_map({1, 64, 9, 8}), w, one.steps()));
  EXPECT_FALSE(is_taken(
      x,
      random_map({64, 64, 5, 5}),
      {.stride = one.strides, .padding = none, .dilation = one.dilations}))
      << "no outputs";
  const std::vector<std::int64_t> huge{5, 0x1745D1745D1745D1};
  EXPECT_FALSE(is_taken(
      x,
      w,
      {.stride = one.strides, .padding = huge, .dilation = one.dilations}));
  EXPECT_FALSE(is_taken(
      x,
      w,
      {.stride = none, .padding = none, .dilation = one.dilations}));
  const auto direct = DirectConvolution::of(x, w, one.steps());
  EXPECT_FALSE(direct->takes_gradient(at::randn({64, 64, 2, 3})));
}

TEST(DirectConvolution, CarriesInfAndNanWhereTheyAreSeenOnly) {
  torch::manual_seed(4);
  DrawDirect draw;
  int done = 0;
  for (int i = 0; i < 300; ++i) {
    auto drawn = draw.some();
    if (!drawn) {
      continue;
    }
    ++done;
    const float poison = draw.from(0, 1) == 0
                             ? std::numeric_limits<float>::infinity()
                             : std::numeric_limits<float>::quiet_NaN();
    const at::Tensor is_poisoned = at::zeros_like(drawn->input);
    is_poisoned.select(2, drawn->input.size(2) - 1).select(2, 0).fill_(1);
    const at::Tensor sees = at::conv2d(
        is_poisoned.to(at::kFloat),
        at::ones(drawn->weight.sizes()),
        {},
        drawn->strides,
        drawn->paddings,
        drawn->dilations);
    drawn->input.masked_fill_(is_poisoned != 0, poison);
    drawn->weight = drawn->weight.abs() + 1;
    drawn->bias = at::Tensor();
    const at::Tensor output = drawn->computed_by<DirectConvolution>()[0];
    EXPECT_TRUE(at::equal(output.isfinite().logical_not(), sees != 0))
        << drawn->text();
  }
  EXPECT_GT(done, 100);
}

} // namespace
} // namespace lockstep::kernels
