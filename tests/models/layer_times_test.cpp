// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/layer_times.h"

#include <algorithm>
#include <numeric>

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two convolutions of one shape, a batch norm, a pool, a linear layer.
struct TimedNet : torch::nn::Module {
  torch::nn::Conv2d first = register_module(
      "first",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 3)));
  torch::nn::Conv2d second = register_module(
      "second",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 3)));
  torch::nn::BatchNorm2d bn = register_module("bn", torch::nn::BatchNorm2d(4));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(4, 2));
  torch::nn::Linear unused = register_module("unused", torch::nn::Linear(4, 2));

  at::Tensor forward(at::Tensor x) {
    x = torch::relu(bn(second(first(x))));
    return fc(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
};

const LayerTime& row(const LayerClock& clock, const std::string& name) {
  const auto found = std::ranges::find(clock.layers(), name, &LayerTime::name);
  EXPECT_NE(found, clock.layers().end()) << name;
  return *found;
}

TEST(LayerClock, GradientsGoWithTheirLayers) {
  TimedNet net;
  LayerClock clock(net);
  const auto images = torch::randn({8, 4, 12, 12});
  for (int step = 0; step < 3; ++step) {
    clock.observe([&] { net.forward(images).sum().backward(); });
  }
  for (const char* name : {"first", "second", "bn", "fc"}) {
    EXPECT_GT(row(clock, name).forward_seconds, 0) << name;
    EXPECT_GT(row(clock, name).backward_seconds, 0) << name;
  }
  EXPECT_EQ(row(clock, "second").type, "Conv2d");
  EXPECT_EQ(row(clock, "unused").forward_seconds, 0);
  EXPECT_GT(row(clock, "relu").forward_seconds, 0);
  EXPECT_GT(row(clock, "relu").backward_seconds, 0);
  EXPECT_GT(row(clock, "adaptive_avg_pool2d").backward_seconds, 0);
  for (const LayerTime& layer : clock.layers()) {
    EXPECT_EQ(layer.name.find("ConvolutionBackward"), std::string::npos);
    EXPECT_THAT(layer.kernels, IsEmpty()) << layer.name;
  }
}

TEST(LayerClock, TimesAddUpToNoMoreThanTheStep) {
  TimedNet net;
  LayerClock clock(net);
  const auto images = torch::randn({8, 4, 12, 12});
  const auto start = std::chrono::steady_clock::now();
  clock.observe([&] { net.forward(images).sum().backward(); });
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  const double sum = std::accumulate(
      clock.layers().begin(),
      clock.layers().end(),
      0.0,
      [](double all, const LayerTime& layer) {
        return all + layer.forward_seconds + layer.backward_seconds;
      });
  EXPECT_LE(sum, took.count());
}

TEST(LayerClock, KernelsAreNamed) {
  TimedNet net;
  LayerClock clock(net);
  clock.observe([&] {
    RECORD_FUNCTION("aten::outer", std::vector<c10::IValue>({net.fc->weight}));
    [] { RECORD_FUNCTION("lockstep::product", std::vector<c10::IValue>()); }();
  });
  EXPECT_THAT(row(clock, "fc").kernels, ElementsAre("product"));
}

TEST(LayerClock, SeesThisThreadAndOnlyWhileItObserves) {
  TimedNet net;
  LayerClock clock(net);
  const auto images = torch::randn({1, 4, 12, 12});
  EXPECT_THROW(
      clock.observe([&] {
        net.forward(images);
        throw std::runtime_error("stop");
      }),
      std::runtime_error);
  const double before = row(clock, "first").forward_seconds;
  EXPECT_GT(before, 0);
  net.forward(images);
  EXPECT_EQ(row(clock, "first").forward_seconds, before);
}

} // namespace
} // namespace lockstep
