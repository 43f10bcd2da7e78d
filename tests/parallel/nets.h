// SPDX-License-Identifier: BSD-3-Clause
//
// Small nets that the parallel tests share, and helpers to compare them.
#pragma once

#include <string>
#include <vector>

#include <torch/torch.h>

namespace lockstep::test {

/// Two convolutions with batch normalisation and a classifier: [N, 1, 8, 8].
inline torch::nn::Sequential conv_net() {
  namespace nn = torch::nn;
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1).bias(false)),
      nn::BatchNorm2d(8),
      nn::ReLU(),
      nn::Conv2d(nn::Conv2dOptions(8, 16, 3).stride(2).padding(1)),
      nn::BatchNorm2d(16),
      nn::ReLU(),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})),
      nn::Flatten(),
      nn::Linear(16, 10));
}

/// A perceptron, with dropout if `rate` is not 0: [N, 1, 8, 8].
inline torch::nn::Sequential mlp(double rate = 0.0) {
  namespace nn = torch::nn;
  nn::Sequential net(nn::Flatten(), nn::Linear(64, 32), nn::ReLU());
  if (rate > 0) {
    net->push_back(nn::Dropout(rate));
  }
  net->push_back(nn::Linear(32, 10));
  return net;
}

/// Everything a state dictionary holds, in the order of PyTorch's keys.
inline std::vector<at::Tensor> state_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> tensors;
  for (const auto& child : module.modules()) {
    for (const auto& item : child->named_parameters(false)) {
      tensors.push_back(item.value());
    }
    for (const auto& item : child->named_buffers(false)) {
      tensors.push_back(item.value());
    }
  }
  return tensors;
}

/// The same values, for every bit.
inline bool bits_equal(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && torch::equal(a, b);
}

inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  result.reserve(tensors.size());
  for (const at::Tensor& t : tensors) {
    result.push_back(t.defined() ? t.detach().clone() : at::Tensor());
  }
  return result;
}

/// Gradients of all parameters, copied.
inline std::vector<at::Tensor> gradients_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> grads;
  for (const at::Tensor& p : module.parameters()) {
    grads.push_back(p.grad());
  }
  return copies(grads);
}

/// `b` gets the values of `a`, a net of the same structure.
inline void copy_state(const torch::nn::Module& a, torch::nn::Module& b) {
  const torch::NoGradGuard no_grad;
  const auto from = state_of(a);
  const auto to = state_of(b);
  for (std::size_t i = 0; i < from.size(); ++i) {
    to.at(i).copy_(from[i]);
  }
}

inline at::Tensor images(std::int64_t rows) {
  return torch::randn({rows, 1, 8, 8});
}

inline at::Tensor labels(std::int64_t rows) {
  return torch::randint(10, {rows}, torch::kLong);
}

} // namespace lockstep::test
