// SPDX-License-Identifier: BSD-3-Clause
//
// Ours beside LibTorch's operations and beside float64, on shapes that a
// generator with a fixed seed draws. What is installed is the whole process's:
// each test leaves LibTorch's own.
#include "lockstep/kernels/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/kernels/installed_norms.h"

namespace lockstep::kernels {
namespace {

namespace nn = torch::nn;

/// A layer, its input and the gradient that reaches it.
struct NormCase {
  explicit NormCase(unsigned seed) : engine(seed) {
    channels = from(1, 40);
    sizes = {from(1, 40), channels};
    const std::int64_t maps = from(0, 3);
    for (std::int64_t i = 0; i < 2; ++i) {
      sizes.push_back(maps == 0 ? 1 : from(2, maps == 3 ? 17 : 8));
    }
    if (sizes[0] * sizes[2] * sizes[3] == 1) {
      sizes[0] = 2;
    }
    type = from(0, 3) == 0 ? at::kBFloat16 : at::kFloat;
    after = static_cast<After>(from(0, 2));
    options = nn::BatchNormOptions(channels)
                  .affine(from(0, 4) > 0)
                  .track_running_stats(from(0, 4) > 0);
    if (from(0, 3) == 0) {
      options.momentum(std::nullopt);
    }
    is_training = from(0, 3) > 0;
    const double mean = from(0, 2);
    input = in_some_layout(at::randn(sizes) * 1.5 + mean);
    addend = in_some_layout(at::randn(sizes));
    grad = in_some_layout(at::randn(sizes));
    weight = at::randn({channels});
    bias = at::randn({channels});
  }

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }

  at::Tensor in_some_layout(const at::Tensor& values) {
    const at::Tensor tensor = values.to(type);
    switch (from(0, 4)) {
      case 0:
      case 1:
        return tensor.contiguous(at::MemoryFormat::ChannelsLast);
      case 2: // a part of a larger one
        return at::cat({tensor, tensor}, 1).narrow(1, 0, channels);
      default:
        return tensor;
    }
  }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << type << " " << sizes << ", strides " << input.strides()
        << ", training " << is_training << ", after " << static_cast<int>(after)
        << ", affine " << options.affine() << ", tracks "
        << options.track_running_stats();
    return out.str();
  }

  /// Output; gradients of input, addend, weight and bias; running mean and
  /// variance. Undefined where there is none.
  [[nodiscard]] std::array<at::Tensor, 7> results(at::ScalarType as) const {
    nn::BatchNorm2d layer(options);
    if (options.affine()) {
      layer->weight.detach().copy_(weight);
      layer->bias.detach().copy_(bias);
    }
    if (as == at::kDouble) {
      layer->to(as);
    }
    layer->train(is_training);
    const at::Tensor x = input.to(as).detach().requires_grad_();
    const at::Tensor added = addend.to(as).detach().requires_grad_();
    const at::Tensor y =
        after == After::kNothing ? layer->forward(x)
        : after == After::kRelu
            ? batch_norm_relu(layer, x)
            : batch_norm_add_relu(layer, x, [&] { return added; });
    y.backward(grad.to(as));
    return {
        y.detach(),
        x.grad(),
        added.grad(),
        layer->weight.defined() ? layer->weight.grad() : at::Tensor(),
        layer->bias.defined() ? layer->bias.grad() : at::Tensor(),
        layer->running_mean,
        layer->running_var};
  }

  std::mt19937 engine;
  std::int64_t channels = 0;
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
  After after = After::kNothing;
  nn::BatchNormOptions options{1};
  bool is_training = true;
  at::Tensor input;
  at::Tensor addend;
  at::Tensor grad;
  at::Tensor weight;
  at::Tensor bias;
};

// Relative to the size of the values; of sums, relative to what is usual for so
// many numbers: one that is 0 by luck says nothing. `index`: of the results.
double relative_error(
    const NormCase& c,
    std::size_t index,
    const at::Tensor& found,
    const at::Tensor& exact) {
  const auto values = static_cast<double>(c.sizes[0] * c.sizes[2] * c.sizes[3]);
  const double usual = index == 3 || index == 4 ? std::sqrt(values)
                       : index == 5             ? 0.1
                                                : 1e-30;
  const double size = std::max(
      exact.norm().item<double>(),
      usual * std::sqrt(static_cast<double>(c.channels)));
  return (found.to(at::kDouble) - exact).norm().item<double>() / size;
}

TEST(BatchNorm, IsAsCloseToFloat64AsLibTorch) {
  torch::manual_seed(21);
  for (unsigned seed = 0; seed < 700; ++seed) {
    const NormCase c(seed);
    const auto theirs = c.results(c.type);
    const auto exact = c.results(at::kDouble);
    const Ours installed;
    const auto ours = c.results(c.type);
    // Of so few numbers an error is luck: two roundings of the result.
    const double precision = std::ldexp(1, c.type == at::kFloat ? -23 : -8);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << i << c.text();
      if (!ours[i].defined()) {
        continue;
      }
      ASSERT_EQ(ours[i].scalar_type(), theirs[i].scalar_type()) << c.text();
      ASSERT_EQ(ours[i].sizes(), theirs[i].sizes()) << c.text();
      const double error = relative_error(c, i, ours[i], exact[i]);
      EXPECT_LE(
          error,
          2 * relative_error(c, i, theirs[i], exact[i]) + precision)
          << i << ": " << c.text();
    }
    EXPECT_EQ(ours[0].strides(), theirs[0].strides()) << c.text();
  }
}

// Where sums are long, the errors themselves are compared.
TEST(BatchNorm, IsAsCloseOnTheSizesOfModels) {
  torch::manual_seed(22);
  for (const auto& [channels, side] :
       {std::pair{64, 14}, {64, 7}, {128, 4}, {256, 2}, {512, 1}, {32, 56}}) {
    for (const auto format :
         {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (const double mean : {0.0, 3.0}) {
        NormCase c(1);
        c.channels = channels;
        c.sizes = {64, channels, side, side};
        c.type = at::kFloat;
        c.options = nn::BatchNormOptions(channels);
        c.is_training = true;
        c.after = After::kAddRelu;
        c.input = (at::randn(c.sizes) + mean).contiguous(format);
        c.addend = at::randn(c.sizes).contiguous(format);
        c.grad = at::randn(c.sizes).contiguous(format);
        c.weight = at::rand({channels}) + 0.5;
        c.bias = at::randn({channels});
        const auto theirs = c.results(at::kFloat);
        const auto exact = c.results(at::kDouble);
        const Ours installed;
        const auto ours = c.results(at::kFloat);
        for (std::size_t i = 0; i < ours.size(); ++i) {
          EXPECT_LE(
              relative_error(c, i, ours[i], exact[i]),
              2 * relative_error(c, i, theirs[i], exact[i]) + 1e-8)
              << i << ": " << c.text();
        }
      }
    }
  }
}

TEST(BatchNorm, HasTheSameBitsWithAnyNumberOfThreads) {
  torch::manual_seed(23);
  const Ours installed;
  const int threads = at::get_num_threads();
  for (unsigned seed = 0; seed < 60; ++seed) {
    NormCase c(seed);
    c.sizes[0] += 200; // more than one thread has something to do
    c.is_training = true; // without gradients to LibTorch
    c.type = at::kFloat;
    c.input = c.in_some_layout(at::randn(c.sizes));
    c.addend = c.in_some_layout(at::randn(c.sizes));
    c.grad = c.in_some_layout(at::randn(c.sizes));
    at::set_num_threads(1);
    const auto alone = c.results(c.type);
    for (const int count : {2, 3}) {
      at::set_num_threads(count);
      const auto together = c.results(c.type);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(!alone[i].defined() || torch::equal(alone[i], together[i]))
            << i << ": " << c.text();
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(BatchNorm, CarriesInfAndNan) {
  torch::manual_seed(24);
  const float inf = std::numeric_limits<float>::infinity();
  for (unsigned seed = 0; seed < 200; ++seed) {
    NormCase c(seed);
    for (const float poison : {inf, -inf, NAN}) {
      c.input.select(0, 0).select(0, c.channels - 1).fill_(poison);
      const auto theirs = c.results(c.type);
      const Ours installed;
      const auto ours = c.results(c.type);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i].defined()) {
          EXPECT_TRUE(torch::equal(ours[i].isnan(), theirs[i].isnan()))
              << i << ": " << poison << ": " << c.text();
          EXPECT_TRUE(torch::equal(ours[i].isinf(), theirs[i].isinf()))
              << i << ": " << poison << ": " << c.text();
        }
      }
    }
  }
}

} // namespace
} // namespace lockstep::kernels
