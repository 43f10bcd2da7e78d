// SPDX-License-Identifier: BSD-3-Clause
//
// Batch norms of ours on a GPU beside LibTorch's and beside float64.
#include <cmath>
#include <limits>
#include <thread>

#include "lockstep/device/device_graph.h"
#include "lockstep/kernels/internal/gpu_norm.h"
#include "lockstep/kernels/internal/gpu_program.h"
#include "tests/cuda/support.h"
#include "tests/kernels/norm_case.h"

namespace lockstep::kernels {
namespace {

namespace nn = torch::nn;
using test::kGpu;

class BatchNorm_CUDA : public test::CudaTest {};

bool is_ours(const at::Tensor& y) {
  return y.grad_fn()->name().find("BatchNormNode") != std::string::npos;
}

void expect_as_close(const NormCase& c, double precision) {
  const auto theirs = c.results(c.type);
  const auto exact = c.results(at::kDouble);
  const Ours installed;
  const auto ours = c.results(c.type);
  const auto again = c.results(c.type);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << i << c.text();
    if (!ours[i].defined()) {
      continue;
    }
    ASSERT_EQ(ours[i].scalar_type(), theirs[i].scalar_type()) << c.text();
    ASSERT_EQ(ours[i].sizes(), theirs[i].sizes()) << c.text();
    EXPECT_LE(
        relative_error(c, i, ours[i], exact[i]),
        2 * relative_error(c, i, theirs[i], exact[i]) + precision)
        << i << ": " << c.text();
    EXPECT_TRUE(torch::equal(ours[i], again[i])) << i << ": " << c.text();
  }
}

TEST_F(BatchNorm_CUDA, IsAsCloseToFloat64AsLibTorch) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const NormCase c(seed, kGpu);
    expect_as_close(c, std::ldexp(1, c.type == at::kFloat ? -23 : -8));
  }
}

TEST_F(BatchNorm_CUDA, IsAsCloseOnTheSizesOfModels) {
  for (const auto& [channels, side] :
       {std::pair{64, 14}, {64, 7}, {128, 4}, {256, 2}, {512, 1}, {2048, 7}}) {
    for (const double mean : {0.0, 3.0, 1000.0}) {
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        NormCase c(1, kGpu);
        c.channels = channels;
        c.sizes = {64, channels, side, side};
        c.type = type;
        c.options = nn::BatchNormOptions(channels);
        c.is_training = true;
        // Far from 0 few bits are left, and which side of 0 a number is on,
        // which a ReLU asks, is luck.
        c.after = mean > 100 ? After::kNothing : After::kAddRelu;
        const auto numbers = [&](double around) {
          return (at::randn(c.sizes) + around)
              .to(type)
              .contiguous(at::MemoryFormat::ChannelsLast);
        };
        c.input = numbers(mean);
        c.addend = numbers(0);
        c.grad = numbers(0);
        c.weight = at::rand({channels}) + 0.5;
        c.bias = at::randn({channels});
        expect_as_close(
            c,
            type == at::kFloat ? std::max(1.0, mean) * 1e-7
                               : std::ldexp(1, -8));
      }
    }
  }
}

TEST_F(BatchNorm_CUDA, IsOursForChannelsLastAndTablesOnly) {
  const Ours installed;
  const auto way = [](const at::Tensor& x, auto layer) {
    layer->to(kGpu);
    return is_ours(layer->forward(x.to(kGpu)));
  };
  const at::Tensor maps = at::randn({4, 16, 3, 3});
  EXPECT_TRUE(
      way(maps.contiguous(at::MemoryFormat::ChannelsLast),
          nn::BatchNorm2d(16)));
  EXPECT_FALSE(way(maps, nn::BatchNorm2d(16)));
  EXPECT_TRUE(way(at::randn({9, 32}), nn::BatchNorm1d(32)));
  EXPECT_FALSE(way(at::randn({9, 3}), nn::BatchNorm1d(3)));
  EXPECT_FALSE(way(at::randn({9, 32, 4}), nn::BatchNorm1d(32)));
  EXPECT_TRUE(way(
      at::randn({2, 8, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast3d),
      nn::BatchNorm3d(8)));
  // Rows that begin inside of a pack.
  const at::Tensor base = at::randn({4 * 16 + 1}, kGpu);
  EXPECT_FALSE(way(base.narrow(0, 1, 64).view({4, 16}), nn::BatchNorm1d(16)));
}

// Strides along single pixels and single images say nothing, but LibTorch
// chooses a layout by them.
TEST_F(BatchNorm_CUDA, ViewsWithStridesThatSayNothing) {
  const at::Tensor maps =
      at::randn({3, 16, 5, 4}, kGpu).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor sequence = at::randn({3, 7, 16}, kGpu);
  const at::Tensor picture = at::randn({6, 5, 16}, kGpu);
  for (const at::Tensor& x :
       {maps[1].unsqueeze(0),
        sequence.transpose(1, 2).unsqueeze(3),
        picture.permute({2, 0, 1}).unsqueeze(0),
        at::randn({5, 16, 1, 1}, kGpu),
        at::randn({5, 16}, kGpu).unsqueeze(2).unsqueeze(3)}) {
    const auto gradient = [&] {
      nn::BatchNorm2d layer(16);
      layer->to(kGpu);
      const at::Tensor leaf = x.detach().requires_grad_();
      const at::Tensor y = batch_norm_relu(layer, leaf);
      (y * at::arange(y.numel(), y.options()).view(y.sizes())).sum().backward();
      return std::pair(y.detach(), leaf.grad());
    };
    const auto theirs = gradient();
    const Ours installed;
    const auto ours = gradient();
    EXPECT_TRUE(at::allclose(ours.first, theirs.first, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(ours.second, theirs.second, 1e-3, 1e-2));
  }
}

// All of a channel's numbers but the first are equal.
TEST_F(BatchNorm_CUDA, AChannelWithOneOutlierHasAVariance) {
  const Ours installed;
  for (const std::int64_t rows : {512, 1 << 20}) {
    at::Tensor x = at::full({rows, 8}, 0.1F, kGpu);
    x[0].fill_(1e4F);
    nn::BatchNorm1d layer(nn::BatchNormOptions(8).momentum(1.0));
    layer->to(kGpu);
    EXPECT_TRUE(layer->forward(x).isfinite().all().item<bool>());
    const at::Tensor exact = x.cpu().to(at::kDouble).var(0);
    EXPECT_TRUE(
        at::allclose(layer->running_var.cpu().to(at::kDouble), exact, 0.02, 0));
  }
}

TEST_F(BatchNorm_CUDA, CarriesInfAndNan) {
  const float inf = std::numeric_limits<float>::infinity();
  for (unsigned seed = 0; seed < 60; ++seed) {
    NormCase c(seed, kGpu);
    for (const float poison : {inf, -inf, NAN}) {
      c.input.select(0, 0).select(0, c.channels - 1).fill_(poison);
      const auto theirs = c.results(c.type);
      const Ours installed;
      const auto ours = c.results(c.type);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i].defined()) {
          EXPECT_TRUE(torch::equal(ours[i].isfinite(), theirs[i].isfinite()))
              << i << ": " << poison << ": " << c.text();
        }
      }
    }
  }
}

TEST_F(BatchNorm_CUDA, GradientsThatLieAnyhow) {
  const Ours installed;
  nn::BatchNorm2d layer(16);
  layer->to(kGpu);
  const at::Tensor x =
      at::randn({4, 16, 3, 3}, kGpu).contiguous(at::MemoryFormat::ChannelsLast);
  const auto gradient = [&](const at::Tensor& grad) {
    const at::Tensor leaf = x.detach().requires_grad_();
    const at::Tensor y = batch_norm_relu(layer, leaf);
    EXPECT_TRUE(is_ours(y));
    y.backward(grad);
    return leaf.grad();
  };
  const at::Tensor dense =
      at::randn({4, 16, 3, 3}, kGpu).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor shifted = at::empty({4 * 16 * 9 + 1}, kGpu)
                                 .narrow(0, 1, 4 * 16 * 9)
                                 .view({4, 3, 3, 16})
                                 .permute({0, 3, 1, 2});
  shifted.copy_(dense);
  const at::Tensor expected = gradient(dense);
  EXPECT_TRUE(torch::equal(gradient(shifted), expected));
  EXPECT_TRUE(torch::equal(gradient(dense.contiguous()), expected));
  const at::Tensor one = at::ones({1}, kGpu).expand({4, 16, 3, 3});
  EXPECT_TRUE(torch::equal(
      gradient(one),
      gradient(at::ones_like(dense, at::MemoryFormat::ChannelsLast))));
}

TEST_F(BatchNorm_CUDA, HasGradientsOfGradients) {
  const auto second = [&] {
    torch::manual_seed(25);
    nn::BatchNorm2d layer(8);
    layer->to(kGpu);
    const at::Tensor x = at::randn({4, 8, 3, 3}, kGpu)
                             .contiguous(at::MemoryFormat::ChannelsLast)
                             .requires_grad_();
    const at::Tensor y = batch_norm_add_relu(layer, x, [&] { return x * 2; });
    const at::Tensor first =
        torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, true)[0];
    return torch::autograd::grad({first.pow(2).sum()}, {x})[0];
  };
  const at::Tensor theirs = second();
  const Ours installed;
  EXPECT_TRUE(at::allclose(second(), theirs, 1e-3, 1e-3));
}

TEST_F(BatchNorm_CUDA, InAGraphAndInThreads) {
  const Ours installed;
  const auto make = [] {
    torch::manual_seed(26);
    nn::BatchNorm2d layer(64);
    layer->to(kGpu);
    return layer;
  };
  const at::Tensor x = at::randn({32, 64, 7, 7}, kGpu)
                           .contiguous(at::MemoryFormat::ChannelsLast);
  auto plain = make();
  at::Tensor expected;
  for (int i = 0; i < 3; ++i) {
    expected = batch_norm_relu(plain, x);
  }
  auto recorded = make();
  batch_norm_relu(recorded, x);
  at::Tensor y;
  const auto graph = make_device_graph(kGpu);
  graph->record([&] { y = batch_norm_relu(recorded, x); });
  graph->replay();
  graph->replay();
  EXPECT_TRUE(torch::equal(y, expected));
  EXPECT_TRUE(torch::equal(recorded->running_var, plain->running_var));

  std::vector<at::Tensor> found(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(found.size());
    for (at::Tensor& result : found) {
      threads.emplace_back([&] {
        auto layer = make();
        for (int i = 0; i < 50; ++i) {
          result = batch_norm_relu(layer, x);
        }
        result = result.cpu();
      });
    }
  }
  for (const at::Tensor& result : found) {
    EXPECT_TRUE(torch::equal(result, found.front()));
  }
}

TEST_F(BatchNorm_CUDA, ItsProgramCompilesForGpusFrom2020On) {
  for (const int capability : {80, 86, 89, 90}) {
    EXPECT_GT(GpuProgram::compile(gpu_norm_source(), capability).size(), 1000U);
  }
  const Error error =
      test::thrown_by([] { GpuProgram::compile("int kernel( {", 90); });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, ::testing::HasSubstr("error"));
}

} // namespace
} // namespace lockstep::kernels
