// SPDX-License-Identifier: BSD-3-Clause
//
// What the constructors of the model families share.
#pragma once

#include <memory>

#include <torch/nn/modules/activation.h>

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

} // namespace lockstep::internal
