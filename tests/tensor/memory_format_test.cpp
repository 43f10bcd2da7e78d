// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/memory_format.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

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

} // namespace
} // namespace lockstep
