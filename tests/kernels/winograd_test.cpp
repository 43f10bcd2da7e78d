// SPDX-License-Identifier: BSD-3-Clause
//
// Winograd's convolutions beside float64 and LibTorch's kernels, on shapes that
// a generator with a fixed seed draws.
#include "lockstep/kernels/internal/winograd.h"

#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/convolution_case.h"

namespace lockstep::kernels {
namespace {

constexpr int kTiledCases = 400;
constexpr auto kLast = at::MemoryFormat::ChannelsLast;

ConvolutionCase of_sizes(
    at::IntArrayRef images, // [n, h, w]
    std::int64_t in,
    std::int64_t out,
    const std::vector<std::int64_t>& padding) {
  return {
      .input = at::randn({images[0], in, images[1], images[2]})
                   .relu()
                   .contiguous(kLast),
      .weight = (at::randn({out, in, 3, 3}) / 24).contiguous(kLast),
      .grad_output = at::randn({images[0],
                                out,
                                images[1] + 2 * padding[0] - 2,
                                images[2] + 2 * padding[1] - 2})
                         .contiguous(kLast),
      .paddings = padding};
}

class DrawTiled {
 public:
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

  ConvolutionCase some() {
    ConvolutionCase drawn = of_sizes(
        {from(1, 9), from(3, 13), from(3, 13)},
        kChannelStep * from(1, 5),
        kChannelStep * from(1, 5),
        {from(0, 2), from(0, 2)});
    if (from(0, 1) == 1) {
      drawn.bias = at::randn({drawn.weight.size(0)});
    }
    if (from(0, 2) == 0) { // one of both decides
      drawn.weight = drawn.weight.contiguous();
    }
    if (from(0, 2) == 0) {
      drawn.grad_output = drawn.grad_output.contiguous();
    }
    return drawn;
  }

 private:
  std::mt19937 engine_{19};
};

WinogradConvolution convolution_of(const ConvolutionCase& one) {
  return WinogradConvolution::of(one.input, one.weight, one.steps()).value();
}

constexpr std::array<const char*, 3> kWhat{"output", "input", "weight"};

TEST(Winograd, IsNearFloat64) {
  torch::manual_seed(1);
  DrawTiled draw;
  for (int i = 0; i < kTiledCases; ++i) {
    const ConvolutionCase drawn = draw.some();
    const auto exact = drawn.libtorchs(at::kDouble);
    const auto ours = drawn.computed_by<WinogradConvolution>();
    for (std::size_t k = 0; k < ours.size(); ++k) {
      SCOPED_TRACE(std::string(kWhat.at(k)) + " of case " + std::to_string(i));
      ASSERT_EQ(ours[k].sizes(), exact[k].sizes());
      EXPECT_TRUE(ours[k].is_contiguous(kLast));
      EXPECT_LT(rms_error(ours[k], exact[k]), 2e-6 * rms(exact[k]));
    }
  }
}

// Where it is used: the layers of ResNets and VGGs.
TEST(Winograd, IsAsExactAsLibTorchs) {
  if (winograd_loops().panel < 16) {
    GTEST_SKIP() << "without AVX2 LibTorch's kernels are used";
  }
  torch::manual_seed(2);
  struct Layer {
    std::int64_t batch;
    std::int64_t map;
    std::int64_t in;
    std::int64_t out;
  };
  int compared = 0;
  for (const Layer& layer : std::vector<Layer>{
           {256, 4, 64, 64},
           {256, 4, 128, 128},
           {256, 4, 256, 512},
           {4, 7, 64, 64},
           {16, 4, 128, 256},
           {64, 7, 64, 64},
           {64, 8, 128, 256},
           {32, 14, 256, 256},
           {32, 28, 128, 128},
           {32, 56, 64, 64}}) {
    const ConvolutionCase one = of_sizes(
        {layer.batch, layer.map, layer.map},
        layer.in,
        layer.out,
        {1, 1});
    const WinogradConvolution convolution = convolution_of(one);
    const auto exact = one.libtorchs(at::kDouble);
    const auto theirs = one.libtorchs(at::kFloat);
    const auto ours = one.computed_by<WinogradConvolution>();
    for (std::size_t k = 0; k < ours.size(); ++k) {
      SCOPED_TRACE(
          std::string(kWhat.at(k)) + ", " + std::to_string(layer.in) +
          " channels, maps of " + std::to_string(layer.map));
      if (!convolution.is_better(static_cast<Pass>(k))) {
        continue;
      }
      ++compared;
      EXPECT_LE(
          rms_error(ours[k], exact[k]),
          2 * rms_error(theirs[k], exact[k]))
          << rms_error(theirs[k], exact[k]) / rms(exact[k]);
    }
  }
  EXPECT_GE(compared, 20);
}

TEST(Winograd, HasTheSameBitsWithAnyNumberOfThreads) {
  torch::manual_seed(3);
  const ConvolutionCase one = of_sizes({37, 7, 9}, 64, 128, {1, 1});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = one.computed_by<WinogradConvolution>();
  at::set_num_threads(4);
  const auto together = one.computed_by<WinogradConvolution>();
  at::set_num_threads(threads);
  for (std::size_t k = 0; k < alone.size(); ++k) {
    EXPECT_TRUE(at::equal(alone[k], together[k])) << kWhat.at(k);
  }
}

TEST(Winograd, TakesOnlyWhatItCanCompute) {
  const ConvolutionCase one = of_sizes({64, 8, 8}, 64, 64, {1, 1});
  const auto is_taken = [](const at::Tensor& input,
                           const at::Tensor& weight,
                           std::int64_t stride = 1,
                           std::int64_t padding = 1,
                           std::int64_t dilation = 1) {
    return WinogradConvolution::of(
               input,
               weight,
               {.stride = stride, .padding = padding, .dilation = dilation})
        .has_value();
  };
  EXPECT_TRUE(is_taken(one.input, one.weight));
  EXPECT_FALSE(is_taken(one.input.contiguous(), one.weight.contiguous()));
  EXPECT_FALSE(is_taken(one.input, one.weight, 2));
  EXPECT_FALSE(is_taken(one.input, one.weight, 1, 3));
  EXPECT_FALSE(is_taken(one.input, one.weight, 1, 1, 2));
  EXPECT_FALSE(is_taken(one.input.to(at::kDouble), one.weight));
  EXPECT_FALSE(is_taken(one.input.narrow(1, 0, 60), one.weight));
  EXPECT_FALSE(is_taken(one.input, at::randn({64, 64, 5, 5})));
  EXPECT_FALSE(is_taken(one.input.narrow(0, 0, 0), one.weight));
  EXPECT_FALSE(convolution_of(one).takes_gradient(at::randn({64, 64, 7, 8})));
}

// What a window sees reaches the outputs of its tile, and no other's.
TEST(Winograd, HidesNoNan) {
  ConvolutionCase one = of_sizes({2, 8, 8}, 32, 32, {1, 1});
  one.input.index_put_({0, 3, 6, 6}, std::numeric_limits<float>::quiet_NaN());
  const at::Tensor output = convolution_of(one).forward({});
  const at::Tensor expected = at::conv2d(one.input, one.weight, {}, 1, 1);
  EXPECT_TRUE(output.isnan()
                  .logical_or(expected.isnan().logical_not())
                  .all()
                  .item<bool>());
  EXPECT_EQ(output.isnan().sum().item<std::int64_t>(), 32 * 16);
}

// The spectra of one set of loops, and what comes back out of them. Weights in
// the order of rows, whatever the panels are.
std::vector<at::Tensor> transformed_by(const WinogradLoops& loops) {
  constexpr std::int64_t kChannels = 64;
  const TiledMap map{
      .height = 7,
      .width = 9,
      .channels = kChannels,
      .above = 1,
      .left = 2,
      .tiles_down = 2,
      .tiles_across = 3};
  const TilePart part{
      .tile = 2,
      .tiles = 9,
      .channel = 32,
      .channels = 32,
      .step = spectrum_step(9, 32)};
  torch::manual_seed(5);
  const at::Tensor pixels = at::randn({2, map.height, map.width, kChannels});
  const at::Tensor taps = at::randn({3, kTaps, kChannels});
  const auto* from = pixels.const_data_ptr<float>();
  at::Tensor windows = at::zeros({kSpectrum * part.step});
  at::Tensor grads = at::zeros_like(windows);
  at::Tensor outputs = at::zeros_like(pixels);
  at::Tensor weight = at::zeros({kSpectrum, spectrum_step(3, kChannels)});
  at::Tensor gradient = at::zeros_like(taps);
  loops.window_spectrum(map, part, from, windows.mutable_data_ptr<float>());
  loops.gradient_spectrum(map, part, from, grads.mutable_data_ptr<float>());
  loops.outputs(
      map,
      part,
      windows.const_data_ptr<float>(),
      from,
      outputs.mutable_data_ptr<float>());
  const WinogradLoops::Weight sizes{
      .end = 3,
      .rows = 3,
      .columns = kChannels,
      .row_step = kTaps * kChannels,
      .tap_step = kChannels};
  loops.weight_spectrum(
      sizes,
      taps.const_data_ptr<float>(),
      weight.mutable_data_ptr<float>());
  const at::Tensor by_row =
      weight.narrow(1, 0, 3 * kChannels)
          .reshape({kSpectrum, kChannels / loops.panel, 3, loops.panel})
          .transpose(1, 2)
          .reshape({kSpectrum, 3 * kChannels});
  weight.narrow(1, 0, 3 * kChannels).copy_(by_row.clone());
  loops.weight_gradient(
      sizes,
      weight.const_data_ptr<float>(),
      gradient.mutable_data_ptr<float>());
  return {windows, grads, outputs, weight, gradient};
}

TEST(Winograd, LoopsOfEveryInstructionSetTransform) {
  const auto all = usable_winograd_loops();
  const auto expected = transformed_by(*all.back());
  for (const at::Tensor& tensor : expected) {
    EXPECT_GT(tensor.count_nonzero().item<std::int64_t>(), 500);
  }
  for (const WinogradLoops* loops : all) {
    const auto found = transformed_by(*loops);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-4, 1e-4))
          << i << " with panels of " << loops->panel;
    }
  }
}

} // namespace
} // namespace lockstep::kernels
