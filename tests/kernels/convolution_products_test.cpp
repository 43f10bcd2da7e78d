// SPDX-License-Identifier: BSD-3-Clause
//
// Products beside LibTorch's kernels and beside float64, on shapes that a
// generator with a fixed seed draws: odd sizes, strides, dilations, layouts.
#include "lockstep/kernels/internal/convolution_products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/kernels/convolution_case.h"

namespace lockstep::kernels {
namespace {

constexpr int kCases = 2000;

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }

  // The same values with other strides: packed, channels last, or a part of a
  // larger tensor.
  at::Tensor in_some_layout(const at::Tensor& tensor) {
    switch (from(0, 3)) {
      case 0:
        return tensor.contiguous(at::MemoryFormat::ChannelsLast);
      case 1:
        return at::cat({tensor, tensor}, 1).narrow(1, 0, tensor.size(1));
      case 2:
        return tensor.transpose(2, 3).contiguous().transpose(2, 3);
      default:
        return tensor;
    }
  }

 private:
  std::mt19937 engine_;
};

// A convolution and the gradient that reaches it.
struct ConvolutionShape : ConvolutionCase {
  // Images and channels: from `batch` and `channels` on.
  explicit ConvolutionShape(
      Draw& draw,
      std::int64_t batch = 1,
      std::int64_t channels = 1) {
    strides = {draw.from(1, 3), draw.from(1, 3)};
    paddings = {draw.from(0, 3), draw.from(0, 3)};
    dilations = {draw.from(1, 3), draw.from(1, 2)};
    const auto type = draw.from(0, 3) == 0 ? at::kBFloat16 : at::kFloat;
    const std::int64_t in = draw.from(channels, channels + 40);
    const std::int64_t out = draw.from(channels, channels + 40);
    const auto tensor = [&](at::IntArrayRef sizes) {
      return draw.in_some_layout(at::randn(sizes).to(type));
    };
    input = tensor(
        {draw.from(batch, batch + 8), in, draw.from(1, 7), draw.from(1, 7)});
    weight = tensor({out, in, draw.from(1, 5), draw.from(1, 5)});
    if (draw.from(0, 1) == 1) {
      bias = at::randn({out}).to(type);
    }
    products = ConvolutionProducts::of(input, weight, steps());
    if (products) {
      grad_output = tensor(products->forward(bias).sizes());
    }
  }

  [[nodiscard]] ConvolutionResults ours() const {
    return computed_by<ConvolutionProducts>();
  }

  std::optional<ConvolutionProducts> products;
};

// Meanwhile: a batch is one thread's.
class OneThread {
 public:
  OneThread() {
    at::set_num_threads(1);
  }
  ~OneThread() {
    at::set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

constexpr std::array kPasses{
    Pass::kForward,
    Pass::kInputGradient,
    Pass::kWeightGradient};

// Root of the mean square, relative to the values', in units of the type's
// precision: a single largest error would be luck.
double error_of(const at::Tensor& found, const at::Tensor& exact) {
  const double precision = found.scalar_type() == at::kFloat
                               ? std::ldexp(1, -24)
                               : std::ldexp(1, -9);
  const auto size = exact.norm().item<double>();
  const auto error = (found.to(at::kDouble) - exact).norm().item<double>();
  return size == 0 ? error : error / size / precision;
}

// A wrong pixel or tap would be an error of thousands of units.
TEST(ConvolutionProducts, AreRightForAnyShape) {
  torch::manual_seed(11);
  Draw draw(11);
  for (int done = 0; done < kCases;) {
    const ConvolutionShape c(draw);
    if (!c.products) {
      continue;
    }
    ++done;
    const auto exact = c.libtorchs(at::kDouble);
    const auto ours = c.ours();
    for (std::size_t i = 0; i < kPasses.size(); ++i) {
      ASSERT_EQ(ours[i].sizes(), exact[i].sizes()) << c.text();
      ASSERT_EQ(ours[i].scalar_type(), c.input.scalar_type()) << c.text();
      ASSERT_LE(error_of(ours[i], exact[i]), 12) << i << ": " << c.text();
    }
  }
}

// Sums in one chain (see matrix_product.h) beside a convolution's blocks: 2.15
// times the error at most on AMD's AVX-512, 2 where MKL multiplies.
constexpr double kMostOfTheirError = 3;

// Where they are used: of those shapes the sums are long, and no luck.
TEST(ConvolutionProducts, AreAsCloseToFloat64AsLibTorch) {
  torch::manual_seed(16);
  Draw draw(16);
  const OneThread one_thread;
  int done = 0;
  while (done < 150) {
    const ConvolutionShape c(draw, 128, 64);
    const bool is_used =
        c.products && std::ranges::any_of(kPasses, [&](Pass pass) {
          return c.products->is_better(pass);
        });
    if (!is_used) {
      continue;
    }
    ++done;
    const auto exact = c.libtorchs(at::kDouble);
    const auto theirs = c.libtorchs(c.input.scalar_type());
    const auto ours = c.ours();
    for (std::size_t i = 0; i < kPasses.size(); ++i) {
      // Of a few padded shapes oneDNN leaves bfloat16 gradients of NaN.
      if (c.products->is_better(kPasses[i]) &&
          theirs[i].isfinite().all().item<bool>()) {
        EXPECT_LE(
            error_of(ours[i], exact[i]),
            kMostOfTheirError * error_of(theirs[i], exact[i]))
            << i << ": " << c.text();
      }
    }
  }
}

// A program that lets products round the factors says nothing of convolutions.
TEST(ConvolutionProducts, AreLeftWhereProductsAreLessPrecise) {
  const auto input = at::zeros({64, 64, 1, 1});
  const auto weight = at::zeros({64, 64, 3, 3});
  const std::vector<std::int64_t> ones{1, 1};
  const KernelSteps steps{.stride = ones, .padding = ones, .dilation = ones};
  auto& context = at::globalContext();
  const auto are_better = [&](at::ScalarType type) {
    const auto products =
        ConvolutionProducts::of(input.to(type), weight.to(type), steps);
    return std::ranges::all_of(kPasses, [&](Pass pass) {
      return products->is_better(pass);
    });
  };
  EXPECT_TRUE(are_better(at::kFloat));
  context.setFloat32MatmulPrecision("medium");
  EXPECT_FALSE(are_better(at::kFloat));
  EXPECT_TRUE(are_better(at::kBFloat16));
  context.setFloat32Precision(
      at::Float32Backend::MKLDNN,
      at::Float32Op::CONV,
      at::Float32Precision::BF16);
  EXPECT_TRUE(are_better(at::kFloat));
  context.setFloat32Precision(
      at::Float32Backend::MKLDNN,
      at::Float32Op::CONV,
      at::Float32Precision::NONE);
  context.setFloat32MatmulPrecision("highest");
  EXPECT_TRUE(are_better(at::kFloat));
}

TEST(ConvolutionProducts, OfFewImagesAreAsCloseInBfloat16) {
  torch::manual_seed(21);
  int compared = 0;
  for (const std::int64_t map : {1, 2}) {
    for (const std::int64_t kernel : {1, 3}) {
      ConvolutionCase one{
          .input = at::randn({2, 256, map, map}).relu(),
          .weight = at::randn({512, 256, kernel, kernel}) / 48,
          .grad_output = at::randn({2, 512, 1, 1}),
          .strides = {map, map},
          .paddings = {kernel / 2, kernel / 2}};
      one = one.to(at::kBFloat16);
      const auto products =
          ConvolutionProducts::of(one.input, one.weight, one.steps());
      const auto exact = one.libtorchs(at::kDouble);
      const auto theirs = one.libtorchs(at::kBFloat16);
      const auto ours = one.computed_by<ConvolutionProducts>();
      for (std::size_t i = 0; i < kPasses.size(); ++i) {
        ASSERT_TRUE(products->is_better(kPasses.at(i)));
        ++compared;
        EXPECT_LE(
            rms_error(ours.at(i), exact.at(i)),
            2 * rms_error(theirs.at(i), exact.at(i)))
            << i << ": " << one.text();
      }
    }
  }
  EXPECT_EQ(compared, 12);
}

TEST(ConvolutionProducts, HaveLibTorchsStrides) {
  torch::manual_seed(12);
  Draw draw(12);
  for (int i = 0; i < 200; ++i) {
    const ConvolutionShape c(draw);
    if (c.products) {
      const auto theirs = c.libtorchs(c.input.scalar_type());
      const auto ours = c.ours();
      for (std::size_t j = 0; j < ours.size(); ++j) {
        EXPECT_EQ(ours[j].strides(), theirs[j].strides()) << j << c.text();
      }
    }
  }
}

TEST(ConvolutionProducts, RepeatBitForBit) {
  torch::manual_seed(13);
  Draw draw(13);
  for (int i = 0; i < 100; ++i) {
    const ConvolutionShape c(draw);
    if (c.products) {
      const auto first = c.ours();
      const auto second = c.ours();
      for (std::size_t j = 0; j < first.size(); ++j) {
        EXPECT_TRUE(torch::equal(first[j], second[j])) << j << c.text();
      }
    }
  }
}

TEST(ConvolutionProducts, CarryInfAndNanWhereTheyAreSeenOnly) {
  torch::manual_seed(14);
  Draw draw(14);
  int done = 0;
  for (int i = 0; i < 300; ++i) {
    ConvolutionShape c(draw);
    if (!c.products) {
      continue;
    }
    ++done;
    const double poison = draw.from(0, 1) == 0
                              ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
    // Ones instead of all values: which results depend on the pixel?
    const auto pixel = at::zeros(c.input.sizes());
    pixel.select(2, c.input.size(2) - 1).select(2, 0).fill_(1);
    const auto y = at::conv2d(
        pixel,
        at::ones(c.weight.sizes()),
        {},
        c.strides,
        c.paddings,
        c.dilations);
    c.input = at::where(pixel != 0, poison, c.input.to(at::kFloat));
    c.weight = c.weight.to(at::kFloat).abs() + 1;
    const auto ours = ConvolutionProducts::of(c.input, c.weight, c.steps());
    EXPECT_TRUE(torch::equal(~ours->forward({}).isfinite(), y != 0))
        << c.text();
  }
  EXPECT_GT(done, 100);
}

TEST(ConvolutionProducts, MultiplyNoTapOverPadding) {
  const auto weight = at::full({4, 4, 3, 3}, NAN);
  weight.select(3, 1).select(2, 1).fill_(1);
  const std::vector<std::int64_t> ones{1, 1};
  const auto products = ConvolutionProducts::of(
      at::ones({2, 4, 1, 1}),
      weight,
      {.stride = ones, .padding = ones, .dilation = ones});
  ASSERT_TRUE(products);
  EXPECT_TRUE(torch::equal(products->forward({}), at::full({2, 4, 1, 1}, 4.0)));
  const auto grads = at::full({2, 4, 1, 1}, INFINITY);
  const auto gradient = products->weight_gradient(grads);
  EXPECT_EQ(gradient.isinf().sum().item<int>(), 16);
  EXPECT_EQ(gradient.count_nonzero().item<int>(), 16);
}

TEST(ConvolutionProducts, LeaveToLibTorchWhatItRefuses) {
  const std::vector<std::int64_t> ones{1, 1};
  const std::vector<std::int64_t> zeros{0, 0};
  const std::vector<std::int64_t> negative{-1, 1};
  const auto x = at::ones({2, 4, 2, 2});
  const auto w = at::ones({3, 4, 3, 3});
  const auto fit = [&](const KernelSteps& steps) {
    return ConvolutionProducts::of(x, w, steps).has_value();
  };
  EXPECT_TRUE(fit({.stride = ones, .padding = ones, .dilation = ones}));
  EXPECT_FALSE(fit({.stride = zeros, .padding = ones, .dilation = ones}));
  EXPECT_FALSE(fit({.stride = ones, .padding = negative, .dilation = ones}));
  EXPECT_FALSE(fit({.stride = ones, .padding = ones, .dilation = zeros}));
  EXPECT_FALSE(fit({.stride = ones, .padding = zeros, .dilation = ones}));
  const auto products = ConvolutionProducts::of(
      x,
      w,
      {.stride = ones, .padding = ones, .dilation = ones});
  EXPECT_TRUE(products->takes_gradient(at::ones({2, 3, 2, 2})));
  EXPECT_FALSE(products->takes_gradient(at::ones({2, 3, 1, 2})));
  EXPECT_FALSE(products->takes_gradient(at::ones({2, 3, 2, 2}, at::kDouble)));
}

// The table of docs/performance.md.
TEST(ConvolutionProducts, AreBetterOnSmallMaps) {
  const OneThread one_thread;
  const std::vector<std::int64_t> ones{1, 1};
  const auto passes = [&](at::IntArrayRef input,
                          at::IntArrayRef weight,
                          std::int64_t stride,
                          at::ScalarType type = at::kFloat,
                          at::MemoryFormat layout =
                              at::MemoryFormat::Contiguous) {
    const std::vector<std::int64_t> strides{stride, stride};
    const std::vector<std::int64_t> padding(2, weight[2] / 2);
    const auto products = ConvolutionProducts::of(
        at::empty(input, type).contiguous(layout),
        at::empty(weight, type).contiguous(layout),
        {.stride = strides, .padding = padding, .dilation = ones});
    std::string found;
    for (const auto& [pass, letter] :
         {std::pair{Pass::kForward, 'f'},
          std::pair{Pass::kInputGradient, 'i'},
          std::pair{Pass::kWeightGradient, 'w'}}) {
      if (products && products->is_better(pass)) {
        found += letter;
      }
    }
    return found;
  };
  EXPECT_EQ(passes({128, 512, 1, 1}, {512, 512, 3, 3}, 1), "fiw");
  EXPECT_EQ(passes({128, 256, 2, 2}, {512, 256, 3, 3}, 2), "fiw");
  EXPECT_EQ(passes({128, 256, 2, 2}, {512, 256, 1, 1}, 2), "fiw");
  EXPECT_EQ(passes({128, 256, 2, 2}, {256, 256, 3, 3}, 1), "fiw");
  EXPECT_EQ(passes({128, 128, 4, 4}, {256, 128, 3, 3}, 2), "iw");
  EXPECT_EQ(passes({128, 128, 4, 4}, {256, 128, 1, 1}, 2), "i");
  EXPECT_EQ(passes({128, 1024, 2, 2}, {256, 1024, 1, 1}, 1), "");
  EXPECT_EQ(passes({128, 256, 4, 4}, {256, 256, 3, 3}, 1), "");
  EXPECT_EQ(passes({128, 256, 4, 4}, {512, 256, 3, 3}, 1), "w");
  EXPECT_EQ(passes({128, 64, 7, 7}, {64, 64, 3, 3}, 1), "");
  EXPECT_EQ(passes({16, 512, 1, 1}, {512, 512, 3, 3}, 1), "");
  EXPECT_EQ(passes({31, 256, 2, 2}, {256, 256, 3, 3}, 1), "");
  EXPECT_EQ(passes({64, 256, 2, 2}, {256, 256, 3, 3}, 1), "fiw");
  EXPECT_EQ(passes({63, 256, 2, 2}, {256, 256, 3, 3}, 1), "w");
  EXPECT_EQ(passes({127, 128, 4, 4}, {256, 128, 3, 3}, 2), "w");
  EXPECT_EQ(passes({128, 32, 1, 1}, {512, 32, 3, 3}, 1), "");
  const auto half = at::kBFloat16;
  const auto last = at::MemoryFormat::ChannelsLast;
  EXPECT_EQ(passes({2, 512, 1, 1}, {512, 512, 3, 3}, 1, half), "fiw");
  EXPECT_EQ(passes({1, 512, 1, 1}, {512, 512, 3, 3}, 1, half), "");
  EXPECT_EQ(passes({128, 256, 2, 2}, {512, 256, 3, 3}, 2, half), "fiw");
  EXPECT_EQ(passes({128, 128, 4, 4}, {256, 128, 1, 1}, 2, half), "i");
  EXPECT_EQ(passes({128, 128, 4, 4}, {256, 128, 3, 3}, 2, half), "w");
  EXPECT_EQ(passes({128, 256, 2, 2}, {256, 256, 3, 3}, 1, half), "w");
  EXPECT_EQ(passes({128, 256, 2, 2}, {256, 256, 3, 3}, 1, half, last), "fiw");
  at::set_num_threads(2); // with half of the batch each
  EXPECT_EQ(passes({128, 256, 2, 2}, {256, 256, 3, 3}, 1), "fiw");
  EXPECT_EQ(passes({126, 256, 2, 2}, {256, 256, 3, 3}, 1), "w");
  EXPECT_EQ(passes({128, 512, 1, 1}, {512, 512, 3, 3}, 1), "fiw");
}

} // namespace
} // namespace lockstep::kernels
