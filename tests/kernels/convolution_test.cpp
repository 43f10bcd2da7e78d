// SPDX-License-Identifier: BSD-3-Clause
//
// Convolutions of LibTorch's own modules and functions while products are
// installed, beside the same calls with LibTorch's kernels.
#include <array>
#include <random>
#include <tuple>

#include <ATen/autocast_mode.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/kernels/install.h"
#include "lockstep/kernels/internal/convolution_products.h"
#include "lockstep/parallel/data_parallel.h"

namespace lockstep::kernels {
namespace {

// Products meanwhile; LibTorch's kernels before and after.
class Products {
 public:
  Products() {
    install({.convolution = true});
  }
  ~Products() {
    uninstall();
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
};

// What `compute` gives with LibTorch's kernels and with products.
template <class Compute>
auto both(Compute compute) {
  uninstall();
  auto theirs = compute();
  const Products products;
  return std::make_pair(std::move(theirs), compute());
}

void expect_close(const at::Tensor& theirs, const at::Tensor& ours) {
  EXPECT_EQ(theirs.scalar_type(), ours.scalar_type());
  const double room = theirs.scalar_type() == at::kBFloat16 ? 1e-2 : 1e-5;
  const auto largest = theirs.detach().abs().max().item<double>();
  EXPECT_TRUE(torch::allclose(theirs, ours, room, room * largest));
}

// 3x3 from 2x2 maps to one pixel, with a bias: all passes have products.
struct Layer {
  explicit Layer(at::ScalarType type = at::kFloat) {
    torch::manual_seed(21);
    x = torch::randn({64, 128, 2, 2}, type).requires_grad_();
    w = (torch::randn({96, 128, 3, 3}, type) * 0.05).requires_grad_();
    b = torch::randn({96}, type).requires_grad_();
    grad = torch::randn({64, 96, 1, 1}, type);
  }
  [[nodiscard]] at::Tensor forward() const {
    return torch::conv2d(x, w, b, 2, 1);
  }
  std::vector<std::int64_t> ones{1, 1};
  std::vector<std::int64_t> twos{2, 2};
  at::Tensor x;
  at::Tensor w;
  at::Tensor b;
  at::Tensor grad;
};

TEST(Convolution, HasForwardAndGradientsFromProducts) {
  const Layer layer;
  const auto [theirs, ours] = both([&] {
    const auto y = layer.forward();
    auto found =
        torch::autograd::grad({y}, {layer.x, layer.w, layer.b}, {layer.grad});
    found.push_back(y.detach());
    return found;
  });
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_EQ(theirs[i].strides(), ours[i].strides()) << i;
    expect_close(theirs[i], ours[i]);
  }
  const torch::NoGradGuard no_grad;
  const auto products = ConvolutionProducts::of(
      layer.x,
      layer.w,
      {.stride = layer.twos, .padding = layer.ones, .dilation = layer.ones});
  EXPECT_TRUE(torch::equal(ours[0], products->input_gradient(layer.grad)));
  EXPECT_TRUE(torch::equal(ours[1], products->weight_gradient(layer.grad)));
  EXPECT_TRUE(torch::equal(ours[3], products->forward(layer.b).detach()));
  EXPECT_FALSE(torch::equal(ours[3], theirs[3]));
}

TEST(Convolution, ComputesWantedGradientsOnly) {
  const Layer layer;
  const std::vector<std::int64_t> none{0, 0};
  const std::vector<std::int64_t> bias{96};
  for (int mask = 1; mask < 8; ++mask) {
    const std::array wanted{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
    const auto [theirs, ours] = both([&] {
      const torch::NoGradGuard no_grad;
      const auto [x, w, b] = at::convolution_backward(
          layer.grad,
          layer.x,
          layer.w,
          bias,
          layer.twos,
          layer.ones,
          layer.ones,
          false,
          none,
          1,
          wanted);
      return std::vector<at::Tensor>{x, w, b};
    });
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(ours[i].defined(), wanted[i]) << mask;
      if (wanted[i]) {
        expect_close(theirs[i], ours[i]);
      }
    }
  }
}

TEST(Convolution, RefusesAWrongBiasAsLibTorchDoes) {
  const Layer layer;
  const std::array wrong{at::ones({1}), at::ones({96}, at::kDouble)};
  for (const at::Tensor& bias : wrong) {
    const auto error_of = [&]() -> std::string {
      try {
        torch::conv2d(layer.x, layer.w, bias, 2, 1);
        return "none";
      } catch (const c10::Error& error) {
        return error.what_without_backtrace();
      }
    };
    const auto [theirs, ours] = both(error_of);
    EXPECT_NE(theirs, "none");
    EXPECT_EQ(theirs, ours);
  }
}

TEST(Convolution, HasGradientsOfGradients) {
  const Layer layer;
  const auto [theirs, ours] = both([&] {
    const auto y = layer.forward();
    const auto first = torch::autograd::grad(
        {y.square().sum()},
        {layer.x, layer.w},
        {},
        {},
        /*create_graph=*/true);
    return torch::autograd::grad(
        {first[0].square().sum() + first[1].square().sum()},
        {layer.x, layer.w, layer.b});
  });
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    expect_close(theirs[i], ours[i]);
  }
}

TEST(Convolution, WorksWithoutGradients) {
  const Layer layer;
  const auto [theirs, ours] = both([&] {
    const torch::NoGradGuard no_grad;
    return layer.forward();
  });
  expect_close(theirs, ours);
  EXPECT_FALSE(torch::equal(theirs, ours)) << "were there no products?";
  const Products products;
  const c10::InferenceMode inference;
  const auto x = layer.x.detach().clone();
  EXPECT_TRUE(x.is_inference());
  EXPECT_TRUE(torch::equal(
      torch::conv2d(x, layer.w.detach(), layer.b.detach(), 2, 1),
      ours));
}

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

// One pixel: bfloat16 has products, too.
TEST(Convolution, ObeysAutocast) {
  torch::manual_seed(22);
  const auto x = torch::randn({128, 128, 1, 1}).requires_grad_();
  const auto w = torch::randn({96, 128, 3, 3}).requires_grad_();
  const auto [theirs, ours] = both([&] {
    const Autocast autocast;
    const auto y = torch::conv2d(x, w, {}, 1, 1);
    return std::vector{y.detach(), torch::autograd::grad({y.sum()}, {w})[0]};
  });
  EXPECT_EQ(ours[0].scalar_type(), at::kBFloat16);
  // Without AVX-512, LibTorch sums in bfloat16: its values are no measure.
  const auto rounded = [](const at::Tensor& t) {
    return t.detach().to(at::kBFloat16).to(at::kDouble);
  };
  const auto exact_w = rounded(w).requires_grad_();
  const auto exact = torch::conv2d(rounded(x), exact_w, {}, 1, 1);
  const std::vector expected{
      exact,
      torch::autograd::grad({exact.sum()}, {exact_w})[0]};
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(theirs[i].scalar_type(), ours[i].scalar_type());
    expect_close(expected[i].to(at::kBFloat16), ours[i].to(at::kBFloat16));
  }
}

// LibTorch's bfloat16 gradients have what was in memory there.
TEST(Convolution, HasNoGradientWhereATapSeesPaddingOnly) {
  const auto leave_infinities = [] {
    std::vector<at::Tensor> left;
    left.reserve(32);
    for (int i = 0; i < 32; ++i) {
      left.push_back(torch::full({1 << 14}, 3e38));
    }
  };
  const auto one_tap_of = [](const at::Tensor& gradient) {
    at::Tensor others = gradient.clone();
    for (std::int64_t i = 2; i < others.dim(); ++i) {
      others = others.select(2, others.size(2) / 2);
    }
    return std::make_pair(gradient.abs().sum(), others.abs().sum());
  };
  for (const bool is_exact : {true, false}) {
    install({.convolution = !is_exact});
    for (const std::int64_t dimensions : {1, 2, 3}) {
      for (const std::int64_t groups : {1, 2}) {
        std::vector<std::int64_t> map{4, 32};
        std::vector<std::int64_t> taps{32, 32 / groups};
        map.resize(2 + static_cast<std::size_t>(dimensions), 1);
        taps.resize(map.size(), 3);
        const std::vector<std::int64_t> twos(map.size() - 2, 2);
        const std::vector<std::int64_t> ones(map.size() - 2, 1);
        const auto w = torch::randn(taps, at::kBFloat16).requires_grad_();
        leave_infinities();
        const auto y = torch::convolution(
            torch::randn(map, at::kBFloat16),
            w,
            {},
            twos,
            ones,
            ones,
            /*transposed=*/false,
            std::vector<std::int64_t>(twos.size(), 0),
            groups);
        y.backward(torch::ones_like(y));
        const auto [all, middle] = one_tap_of(w.grad());
        EXPECT_TRUE(torch::equal(all, middle)) << dimensions << " " << groups;
        EXPECT_GT(middle.item<float>(), 0);
      }
    }
  }
  uninstall();
}

TEST(Convolution, IsNotRoundedByAutocastBelowIt) {
  const Layer layer;
  for (const bool are_products : {false, true}) {
    install({.convolution = are_products});
    const auto y = layer.forward();
    const auto outside = torch::autograd::grad(
        {y},
        {layer.x, layer.w},
        {layer.grad},
        /*retain_graph=*/true);
    const Autocast autocast;
    const auto inside =
        torch::autograd::grad({y}, {layer.x, layer.w}, {layer.grad});
    EXPECT_TRUE(torch::equal(outside[0], inside[0]));
    EXPECT_TRUE(torch::equal(outside[1], inside[1]));
  }
  uninstall();
}

TEST(Convolution, IsLibTorchsInEveryBitWhereNoProductFits) {
  std::mt19937 engine(23);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  torch::manual_seed(23);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t groups = draw(1, 3);
    const bool is_transposed = draw(0, 2) == 0;
    const auto dimensions = static_cast<std::size_t>(draw(1, 3));
    const auto type = draw(0, 2) == 0 ? at::kDouble : at::kFloat;
    const auto numbers = [&](std::int64_t low, std::int64_t high) {
      std::vector<std::int64_t> drawn(dimensions);
      std::ranges::generate(drawn, [&] { return draw(low, high); });
      return drawn;
    };
    auto sizes = numbers(5, 9);
    sizes.insert(sizes.begin(), {draw(0, 4), 6 * groups});
    auto kernel = numbers(1, 3);
    kernel.insert(
        kernel.begin(),
        {6 * groups, is_transposed || groups > 1 ? 6 : 6 * groups});
    const auto x = torch::randn(sizes, type).requires_grad_();
    const auto w = torch::randn(kernel, type).requires_grad_();
    const auto strides = numbers(1, 2);
    const auto padding = numbers(0, 1);
    const auto dilation = numbers(1, 2);
    const auto [theirs, ours] = both([&] {
      const auto y = at::convolution(
          x,
          w,
          {},
          strides,
          padding,
          dilation,
          is_transposed,
          numbers(0, 0),
          groups);
      auto found = torch::autograd::grad({y}, {x, w}, {torch::ones_like(y)});
      found.push_back(y.detach());
      return found;
    });
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      ASSERT_TRUE(torch::equal(theirs[j], ours[j])) << i << ", " << j;
    }
  }
}

// All weights of a net of small maps after some steps of LibTorch's optimizer.
at::Tensor trained(const std::string& devices, int threads) {
  at::set_num_threads(threads);
  torch::manual_seed(24);
  const auto conv = [](std::int64_t in, std::int64_t out, std::int64_t stride) {
    return torch::nn::Conv2d(
        torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1));
  };
  torch::nn::Sequential net(
      conv(64, 128, 2),
      torch::nn::BatchNorm2d(128),
      torch::nn::ReLU(),
      conv(128, 128, 2),
      torch::nn::ReLU(),
      conv(128, 128, 1),
      torch::nn::Flatten(),
      torch::nn::Linear(128, 10));
  DataParallel<torch::nn::SequentialImpl> model(net, {.devices = devices});
  torch::optim::SGD optimizer(
      model->parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.9));
  const auto images = torch::randn({128, 64, 4, 4});
  const auto targets = torch::randint(10, {128}, torch::kLong);
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(model->forward(images), targets).backward();
    optimizer.step();
  }
  std::vector<at::Tensor> weights;
  for (const at::Tensor& weight : model->parameters()) {
    weights.push_back(weight.detach().flatten());
  }
  return at::cat(weights);
}

TEST(Convolution, TrainsAlikeOnReplicasAndThreads) {
  const int threads = at::get_num_threads();
  for (const auto& [devices, number] :
       {std::pair{"cpu", 1}, std::pair{"cpu", 2}, std::pair{"cpu*2", 2}}) {
    const auto [theirs, ours] = both([&] { return trained(devices, number); });
    EXPECT_TRUE(torch::allclose(theirs, ours, 1e-4, 1e-5)) << devices;
    EXPECT_FALSE(torch::equal(theirs, ours)) << "were there no products?";
    const Products products;
    EXPECT_TRUE(torch::equal(trained(devices, number), ours)) << devices;
  }
  at::set_num_threads(threads);
}

} // namespace
} // namespace lockstep::kernels
