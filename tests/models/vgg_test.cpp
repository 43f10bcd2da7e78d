// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/utils.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/internal/build.h"

namespace lockstep {
namespace {

/// Layers that compute something else: the forward of a layer is not virtual.
struct DoubledNorm : torch::nn::BatchNorm2dImpl {
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;
  at::Tensor forward(const at::Tensor& x) {
    return torch::nn::BatchNorm2dImpl::forward(x) * 2;
  }
};
struct ShiftedReLU : torch::nn::ReLUImpl {
  at::Tensor forward(at::Tensor x) {
    return torch::nn::ReLUImpl::forward(x) + 1;
  }
};

at::Tensor layer_by_layer(VGG& net, const at::Tensor& x) {
  torch::manual_seed(7); // dropout
  const at::Tensor maps = net.avgpool->forward(net.features->forward(x));
  return net.classifier->forward(maps.flatten(1));
}

at::Tensor forward(VGG& net, const at::Tensor& x) {
  torch::manual_seed(7);
  return net.forward(x);
}

TEST(VGG, GoesThroughItsLayersInOrder) {
  torch::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 32, 32});
  const auto plain = vgg11({.num_classes = 10});
  EXPECT_TRUE(forward(*plain, x).equal(layer_by_layer(*plain, x)));
  const auto net = vgg11_bn({.num_classes = 10});
  EXPECT_TRUE(forward(*net, x).equal(layer_by_layer(*net, x)));
}

// As a user might for another task.
TEST(VGG, TakesLayersThatWereReplaced) {
  torch::manual_seed(2);
  const at::Tensor x = at::randn({2, 3, 32, 32});
  const auto net = vgg11_bn({.num_classes = 10});
  torch::nn::Sequential other;
  for (const torch::nn::AnyModule& layer : *net->features) {
    if (layer.ptr()->as<torch::nn::ReLU>() != nullptr) {
      other->push_back(torch::nn::ELU());
    } else {
      other->push_back(layer);
    }
  }
  net->features = net->replace_module("features", other);
  EXPECT_TRUE(forward(*net, x).equal(layer_by_layer(*net, x)));
}

// Fused are LibTorch's own layers, not those that inherit them.
TEST(VGG, CallsTheForwardOfLayersThatInheritOthers) {
  namespace nn = torch::nn;
  torch::manual_seed(3);
  const at::Tensor x = at::randn({2, 3, 4, 4});
  const auto conv = [] { return nn::Conv2d(nn::Conv2dOptions(3, 3, 1)); };
  std::vector<nn::Sequential> nets;
  nets.emplace_back(conv(), std::make_shared<DoubledNorm>(3), nn::ReLU());
  nets.emplace_back(
      conv(),
      nn::BatchNorm2d(3),
      std::make_shared<ShiftedReLU>());
  nets.emplace_back(
      conv(),
      std::make_shared<DoubledNorm>(3),
      std::make_shared<ShiftedReLU>());
  for (nn::Sequential& net : nets) {
    EXPECT_TRUE(internal::through(*net, x).equal(net->forward(x)));
  }
}

} // namespace
} // namespace lockstep
