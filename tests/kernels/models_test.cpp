// SPDX-License-Identifier: BSD-3-Clause
//
// Models that ask for what follows a norm (tensor/norm_relu.h), with kernels
// that do it.
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/models/classification.h"
#include "tests/kernels/installed_norms.h"

namespace lockstep::kernels {
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

TEST(Models, GoThroughTheirLayersInOrder) {
  torch::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 32, 32});
  const auto net = vgg11_bn({.num_classes = 10});
  const Ours installed;
  EXPECT_TRUE(
      at::allclose(forward(*net, x), layer_by_layer(*net, x), 1e-3, 1e-4));
  net->eval();
  EXPECT_TRUE(
      at::allclose(forward(*net, x), layer_by_layer(*net, x), 1e-3, 1e-4));
}

} // namespace
} // namespace lockstep::kernels
