// SPDX-License-Identifier: BSD-3-Clause
//
// The small networks of PyTorch's tutorials, and a multi-layer perceptron.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/models/model.h"

namespace lockstep {

/// The network of PyTorch's tutorial on saving models, for images of 32 x 32:
/// two convolutions, three linear layers.
class TheModelClass : public Composite<TheModelClass, Model> {
 public:
  explicit TheModelClass(
      const ModelOptions& options = {.num_classes = 10, .in_channels = 3});
  /// Shape: [N, in_channels, 32, 32] float32 to [N, num_classes].
  /// Errors: throws kInvalidArgument for another image size.
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("conv1", conv1);
    visit("pool", pool);
    visit("conv2", conv2);
    visit("fc1", fc1);
    visit("fc2", fc2);
    visit("fc3", fc3);
  }

  torch::nn::Conv2d conv1;
  torch::nn::MaxPool2d pool;
  torch::nn::Conv2d conv2;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
  torch::nn::Linear fc3;
};

/// A module as small as can be: one linear layer `fc` from 3 to 5.
class MyModule : public Composite<MyModule, Model> {
 public:
  MyModule();
  /// Shape: [N, 3] float32 to [N, 5].
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("fc", fc);
  }

  torch::nn::Linear fc;
};

/// Widths of an `MLP`.
struct MLPOptions {
  /// Units: numbers in one sample.
  std::int64_t in_features = 784;
  std::vector<std::int64_t> hidden = {256, 128};
  std::int64_t num_classes = 10;
};

/// Linear layers with ReLU between; keys are `layers.1.weight` and so on.
class MLP : public Composite<MLP, Model> {
 public:
  explicit MLP(const MLPOptions& options = {});
  /// Shape: [N, ...] with `in_features` numbers a sample, to [N, num_classes].
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("layers", layers);
  }

  torch::nn::Sequential layers;
};

} // namespace lockstep
