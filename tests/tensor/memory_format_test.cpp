// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

TEST(MemoryFormat, ConvolutionsChangeLayoutAndKeepValues) {
  torch::nn::Sequential net(
      torch::nn::Conv2d(3, 4, 3),
      torch::nn::BatchNorm2d(4),
      torch::nn::Linear(2, 2));
  const at::Tensor weight = net->parameters().front();
  const at::Tensor before = weight.detach().clone();
  to_memory_format(*net, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(weight.is_contiguous());
  EXPECT_TRUE(weight.equal(before));
  EXPECT_TRUE(weight.is_same(net->parameters().front())) << "same parameter";
  for (const at::Tensor& other : net->parameters()) {
    EXPECT_TRUE(other.dim() == 4 || other.is_contiguous());
  }
  to_memory_format(*net, at::MemoryFormat::Contiguous);
  EXPECT_TRUE(weight.is_contiguous());
  EXPECT_TRUE(weight.equal(before));
}

// Strides as Python's module.to(memory_format=...) gives them; by these kernels
// choose the layout of what they return.
TEST(MemoryFormat, OneChannelHasPythonsStrides) {
  torch::nn::Sequential net(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 64, 7).bias(false)));
  const at::Tensor weight = net->parameters().front();
  EXPECT_EQ(weight.strides(), (std::vector<std::int64_t>{49, 49, 7, 1}));
  to_memory_format(*net, at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(weight.strides(), (std::vector<std::int64_t>{49, 1, 7, 1}));
  const at::Tensor maps = net->forward(at::randn({2, 1, 28, 28}));
  EXPECT_TRUE(maps.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(maps.is_contiguous());
  to_memory_format(*net, at::MemoryFormat::Contiguous);
  EXPECT_EQ(weight.strides(), (std::vector<std::int64_t>{49, 49, 7, 1}));
}

TEST(MemoryFormat, WeightsOfFiveDimensionsComeBackToo) {
  torch::nn::Sequential net(torch::nn::Conv3d(3, 4, 3));
  const at::Tensor weight = net->parameters().front();
  to_memory_format(*net, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(weight.is_contiguous()) << "a format of four dimensions";
  to_memory_format(*net, at::MemoryFormat::ChannelsLast3d);
  EXPECT_FALSE(weight.is_contiguous());
  to_memory_format(*net, at::MemoryFormat::Contiguous);
  EXPECT_TRUE(weight.is_contiguous());
}

TEST(MemoryFormat, ATensorThatLiesSoIsTheSame) {
  const at::Tensor images = at::randn({2, 3, 4, 4});
  EXPECT_TRUE(
      in_memory_format(images, at::MemoryFormat::Contiguous).is_same(images));
  const at::Tensor last =
      in_memory_format(images, at::MemoryFormat::ChannelsLast);
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(last.equal(images));
}

} // namespace
} // namespace lockstep
