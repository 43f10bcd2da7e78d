// SPDX-License-Identifier: BSD-3-Clause
//
// ResNet and VGG with torchvision's names, shapes and initialisation, so that
// its weight files load, and equal seeds give equal weights.
//   auto net = resnet18({.num_classes = 10, .in_channels = 1});
//   net->conv1, net->fc, (*net->layer1)[0]
//   auto vgg = vgg16_bn({.num_classes = 10});
// The small networks of PyTorch's tutorials, and a multi-layer perceptron.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/models/model.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Shape of one residual block.
struct BlockOptions {
  /// Units: channels of the input.
  std::int64_t in_planes = 64;
  /// Units: channels of the 3x3 convolutions.
  std::int64_t planes = 64;
  std::int64_t stride = 1;
  /// Units: pixels between the taps of the 3x3 convolutions. Torchvision has
  /// no dilated `BasicBlock`; here both of its convolutions are.
  std::int64_t dilation = 1;
};

/// Two 3x3 convolutions and a shortcut.
class BasicBlock : public Composite<BasicBlock> {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(const BlockOptions& options, torch::nn::Sequential downsample);
  /// Shape: [N, in_planes, H, W] to [N, planes, H / stride, W / stride].
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("conv1", conv1);
    visit("bn1", bn1);
    visit("relu", relu);
    visit("conv2", conv2);
    visit("bn2", bn2);
    visit("downsample", downsample);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::ReLU relu;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  /// Empty where the shortcut is the input itself.
  torch::nn::Sequential downsample;
};

/// 1x1, 3x3 and 1x1 convolutions and a shortcut.
class Bottleneck : public Composite<Bottleneck> {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(const BlockOptions& options, torch::nn::Sequential downsample);
  /// Shape: [N, in_planes, H, W] to [N, 4 planes, H / stride, W / stride].
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("conv1", conv1);
    visit("bn1", bn1);
    visit("conv2", conv2);
    visit("bn2", bn2);
    visit("conv3", conv3);
    visit("bn3", bn3);
    visit("relu", relu);
    visit("downsample", downsample);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d bn2;
  torch::nn::Conv2d conv3;
  torch::nn::BatchNorm2d bn3;
  torch::nn::ReLU relu;
  /// Empty where the shortcut is the input itself.
  torch::nn::Sequential downsample;
};

/// Which blocks a ResNet has, and how many in each of its four layers.
struct ResNetLayout {
  bool is_bottleneck = false;
  std::array<std::int64_t, 4> blocks = {2, 2, 2, 2};
  /// Layers 2, 3 and 4: whether one keeps the resolution of the layer before
  /// and dilates its convolutions twice as far instead. Its first block is
  /// dilated as the layer before, as torchvision does.
  std::array<bool, 3> replace_stride_with_dilation = {false, false, false};

  /// Units: channels of the maps of layer 1, 2, 3 or 4.
  [[nodiscard]] std::int64_t width(std::size_t layer) const {
    const std::int64_t planes = std::int64_t{32} << layer;
    return is_bottleneck ? planes * Bottleneck::kExpansion
                         : planes * BasicBlock::kExpansion;
  }
};

/// Residual network for images of any size; small ones (28 x 28) work, too.
class ResNet : public Composite<ResNet, Model> {
 public:
  /// Torchvision's network: 3 channels, 1000 classes.
  explicit ResNet(const ResNetLayout& layout);
  /// Shape: [N, C, H, W] float32 to [N, num_classes].
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("conv1", conv1);
    visit("bn1", bn1);
    visit("relu", relu);
    visit("maxpool", maxpool);
    visit("layer1", layer1);
    visit("layer2", layer2);
    visit("layer3", layer3);
    visit("layer4", layer4);
    visit("avgpool", avgpool);
    visit("fc", fc);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::ReLU relu;
  torch::nn::MaxPool2d maxpool;
  torch::nn::Sequential layer1;
  torch::nn::Sequential layer2;
  torch::nn::Sequential layer3;
  torch::nn::Sequential layer4;
  torch::nn::AdaptiveAvgPool2d avgpool;
  torch::nn::Linear fc;
};

/// Replaces `conv1` if `in_channels` is not 3, then `fc` if `num_classes` is
/// not 1000: in this order, as scripts do for FashionMNIST.
void adapt_to(ResNet& net, const ModelOptions& options);

std::shared_ptr<ResNet> resnet18(const ModelOptions& options = {});
std::shared_ptr<ResNet> resnet34(const ModelOptions& options = {});
std::shared_ptr<ResNet> resnet50(const ModelOptions& options = {});
std::shared_ptr<ResNet> resnet101(const ModelOptions& options = {});
std::shared_ptr<ResNet> resnet152(const ModelOptions& options = {});

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
#pragma GCC visibility pop
