// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/utils.h>

#include "lockstep/models/classification.h"

namespace lockstep {
namespace {

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

} // namespace
} // namespace lockstep
