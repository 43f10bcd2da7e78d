// SPDX-License-Identifier: BSD-3-Clause
//
// Gradients of our kernels beside differences of our own outputs: what
// torch.autograd.gradcheck does in float64, along random directions, since ours
// are float32.
#include <array>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/kernels/install.h"
#include "lockstep/kernels/internal/convolution_algorithms.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep::kernels {
namespace {

using at::MemoryFormat;
using at::Tensor;

class Gradcheck : public ::testing::Test {
 protected:
  void SetUp() override {
    install({.convolution = true, .batch_norm = true});
    torch::manual_seed(71);
  }
  void TearDown() override {
    uninstall();
  }
};

double scalar_product(const Tensor& a, const Tensor& b) {
  return (a.to(at::kDouble) * b.to(at::kDouble)).sum().item<double>();
}

double length(const Tensor& a) {
  return std::sqrt(scalar_product(a, a));
}

// The gradient of a weighted sum of outputs for each leaf. `step`: of the
// differences, in standard deviations; `room`: relative to the gradient.
void expect_gradients_of(
    const std::function<Tensor()>& compute,
    const std::vector<Tensor>& leaves,
    double step,
    double room) {
  const Tensor output = compute();
  const Tensor weights = at::randn_like(output);
  const auto grads = torch::autograd::grad({output}, leaves, {weights});
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    SCOPED_TRACE("leaf " + std::to_string(i));
    const Tensor direction = at::randn_like(leaves[i]);
    const Tensor before = leaves[i].detach().clone();
    const auto along = [&](double by) {
      leaves[i].copy_(before + direction * by);
      const double sum = scalar_product(compute(), weights);
      leaves[i].copy_(before);
      return sum;
    };
    const double difference = (along(step) - along(-step)) / (2 * step);
    EXPECT_NEAR(
        scalar_product(grads[i], direction),
        difference,
        room * length(grads[i]));
    EXPECT_GT(length(grads[i]), 0);
  }
}

struct LayerShape {
  std::int64_t batch;
  std::int64_t in;
  std::int64_t out;
  std::int64_t map;
  std::int64_t kernel;
  std::int64_t stride;
};

// What each way takes with channels last, and products with packed maps.
constexpr std::array<LayerShape, 10> kShapes{{
    {64, 64, 64, 7, 3, 1},
    {64, 128, 128, 4, 3, 1},
    {33, 64, 96, 2, 3, 1},
    {64, 64, 128, 7, 3, 2},
    {35, 128, 64, 4, 3, 2},
    {64, 128, 96, 2, 3, 2},
    {64, 256, 256, 1, 3, 1},
    {32, 96, 64, 2, 1, 2},
    {64, 64, 64, 14, 3, 1},
    {5, 64, 64, 1, 3, 1},
}};

// A convolution is linear in either: a large step loses nothing.
TEST_F(Gradcheck, OfConvolutions) {
  std::array<bool, kConvolutionAlgorithms.size()> has_algorithm{};
  for (const auto format :
       {MemoryFormat::ChannelsLast, MemoryFormat::Contiguous}) {
    for (const LayerShape& of : kShapes) {
      const std::vector<std::int64_t> stride{of.stride, of.stride};
      const std::vector<std::int64_t> padding{of.kernel / 2, of.kernel / 2};
      const std::vector<std::int64_t> ones{1, 1};
      const Tensor x = at::randn({of.batch, of.in, of.map, of.map})
                           .contiguous(format)
                           .requires_grad_();
      const Tensor w = at::randn({of.out, of.in, of.kernel, of.kernel})
                           .contiguous(format)
                           .requires_grad_();
      const Tensor b = at::randn({of.out}).requires_grad_();
      SCOPED_TRACE((std::ostringstream() << x.sizes() << " * " << w.sizes()
                                         << ", stride " << of.stride)
                       .str());
      for (std::size_t i = 0; i < kConvolutionAlgorithms.size(); ++i) {
        const auto algorithm = kConvolutionAlgorithms[i].of(
            x.detach(),
            w.detach(),
            {.stride = stride, .padding = padding, .dilation = ones});
        for (const Pass pass :
             {Pass::kForward, Pass::kInputGradient, Pass::kWeightGradient}) {
          has_algorithm[i] =
              has_algorithm[i] || (algorithm && algorithm->is_better(pass));
        }
      }
      expect_gradients_of(
          [&] { return torch::conv2d(x, w, b, of.stride, padding); },
          {x, w, b},
          /*step=*/1,
          /*room=*/1e-4);
    }
  }
  for (const bool is_there : has_algorithm) {
    EXPECT_TRUE(is_there);
  }
}

// No output is near zero, where a ReLU has no gradient.
TEST_F(Gradcheck, OfBatchNorms) {
  for (const std::int64_t map : {1, 2, 4, 7, 14}) {
    for (const auto format :
         {MemoryFormat::ChannelsLast, MemoryFormat::Contiguous}) {
      SCOPED_TRACE(map);
      torch::nn::BatchNorm2d layer(64);
      {
        const torch::NoGradGuard no_grad;
        layer->weight.normal_(0.1, 0.02);
        layer->bias.bernoulli_(0.5).mul_(4).sub_(2);
      }
      const Tensor x =
          at::randn({32, 64, map, map}).contiguous(format).requires_grad_();
      Tensor added = (at::rand({32, 64, map, map}) * 0.5).contiguous(format);
      added.requires_grad_();
      const std::vector<Tensor> leaves{x, layer->weight, layer->bias};
      const double step = 1e-2;
      const double room = 1e-3;
      expect_gradients_of([&] { return layer(x); }, leaves, step, room);
      expect_gradients_of(
          [&] { return batch_norm_relu(layer, x); },
          leaves,
          step,
          room);
      expect_gradients_of(
          [&] { return batch_norm_add_relu(layer, x, [&] { return added; }); },
          {x, layer->weight, layer->bias, added},
          step,
          room);
    }
  }
}

} // namespace
} // namespace lockstep::kernels
