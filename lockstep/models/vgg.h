// SPDX-License-Identifier: BSD-3-Clause
//
// VGG with torchvision's names, shapes and initialisation.
//   auto net = vgg16_bn({.num_classes = 10});
#pragma once

#include <memory>
#include <span>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/models/model.h"

namespace lockstep {

/// The convolutions of a VGG in order.
struct VGGLayout {
  /// Units: channels of each 3x3 convolution; 0 stands for a pooling layer.
  std::span<const int> planes = {};
  bool has_batch_norm = false;
};

/// Plain convolutions, then three linear layers.
class VGG : public Composite<VGG, Model> {
 public:
  /// Torchvision's network: 3 channels, 1000 classes.
  explicit VGG(const VGGLayout& layout);
  /// Shape: [N, C, H, W] float32 to [N, num_classes].
  /// Errors: throws kInvalidArgument for images below 32 x 32: five poolings
  /// leave nothing of them.
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("features", features);
    visit("avgpool", avgpool);
    visit("classifier", classifier);
  }

  torch::nn::Sequential features;
  torch::nn::AdaptiveAvgPool2d avgpool;
  torch::nn::Sequential classifier;
};

/// Replaces `features[0]` if `in_channels` is not 3, then `classifier[6]` if
/// `num_classes` is not 1000.
void adapt_to(VGG& net, const ModelOptions& options);

std::shared_ptr<VGG> vgg11(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg13(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg16(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg19(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg11_bn(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg13_bn(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg16_bn(const ModelOptions& options = {});
std::shared_ptr<VGG> vgg19_bn(const ModelOptions& options = {});

} // namespace lockstep
