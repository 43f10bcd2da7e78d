// SPDX-License-Identifier: BSD-3-Clause
//
// What the model families share.
#pragma once

#include <cstdint>
#include <memory>
#include <typeinfo>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "lockstep/models/model.h"

namespace lockstep::internal {

inline torch::nn::ReLU inplace_relu() {
  torch::nn::ReLU relu(torch::nn::ReLUOptions(/*inplace=*/true));
  return relu;
}

/// A model of a family, with the ends that the task needs.
template <class Net, class Layout>
std::shared_ptr<Net> adapted(
    const Layout& layout,
    const ModelOptions& options) {
  auto net = std::make_shared<Net>(layout);
  adapt_to(*net, options);
  return net;
}

/// The first convolution of every ResNet, with PyTorch's initialisation.
torch::nn::Conv2d resnet_stem(std::int64_t in_channels);

/// `module` if it is of this class; null for others, those that inherit it too:
/// they may have another forward, which is not virtual.
template <class M>
M* exactly(torch::nn::Module& module) {
  return typeid(module) == typeid(M) ? dynamic_cast<M*>(&module) : nullptr;
}

/// `layers.forward(x)`, with each batch norm and the ReLU behind it in one.
/// Errors: as `check_norm_input`.
at::Tensor through(torch::nn::SequentialImpl& layers, at::Tensor x);

/// Errors: throws kInvalidArgument (E_BATCH_OF_ONE) if `norm` is to normalise a
/// single number of each channel: in training, one image with maps of 1 x 1.
void check_norm_input(
    const torch::nn::BatchNorm2dImpl& norm,
    const at::Tensor& x);

} // namespace lockstep::internal
