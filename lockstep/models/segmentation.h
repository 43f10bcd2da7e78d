// SPDX-License-Identifier: BSD-3-Clause
//
// FCN and DeepLabV3 on dilated ResNets: a score of each class for each pixel.
// Names, shapes and initialisation are torchvision's, so that its weight files
// load, and equal seeds give equal weights.
//   auto net = deeplabv3_resnet50({.num_classes = 21, .aux_loss = true});
//   load_weights(*net, "deeplabv3_resnet50_coco.pth");
//   at::Tensor labels = net->forward(images).argmax(1);  // [N, H, W]
//
// Note [Auxiliary classifier]
// A second head on layer 3, which only training uses: torchvision adds half of
// its loss to that of `forward`. It is made with `.aux_loss = true` alone.
// `forward` leaves it out, `forward_with_aux` gives both scores:
//   auto [out, aux] = net->forward_with_aux(images);
//   (loss(out, targets) + 0.5 * loss(aux, targets)).backward();
// Where `forward` alone is trained, its parameters get no gradients, which
// DistributedDataParallel must be told (`find_unused_parameters`).
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/pimpl.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// A ResNet up to its fourth layer, under torchvision's class name.
class IntermediateLayerGetterImpl
    : public Composite<IntermediateLayerGetterImpl> {
 public:
  /// Ownership: shares the layers of `net`.
  explicit IntermediateLayerGetterImpl(const ResNet& net);
  /// The maps of layer 4 and of layer 3.
  /// Shape: [N, C, H, W] to [N, width(4), h, w], [N, width(3), h, w].
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x);

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
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::ReLU relu;
  torch::nn::MaxPool2d maxpool;
  torch::nn::Sequential layer1;
  torch::nn::Sequential layer2;
  torch::nn::Sequential layer3;
  torch::nn::Sequential layer4;
};
TORCH_MODULE(IntermediateLayerGetter);

/// A 3x3 convolution to a quarter of the channels, then a 1x1 one to classes.
class FCNHeadImpl : public Composite<FCNHeadImpl> {
 public:
  FCNHeadImpl(std::int64_t in_channels, std::int64_t num_classes);
  /// Shape: [N, in_channels, h, w] to [N, num_classes, h, w].
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("0", conv);
    visit("1", norm);
    visit("2", relu);
    visit("3", dropout);
    visit("4", last);
  }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::ReLU relu;
  torch::nn::Dropout dropout;
  torch::nn::Conv2d last;
};
TORCH_MODULE(FCNHead);

/// A dilated 3x3 convolution of an `ASPP`.
class ASPPConvImpl : public Composite<ASPPConvImpl> {
 public:
  ASPPConvImpl(
      std::int64_t in_channels,
      std::int64_t out_channels,
      std::int64_t dilation);
  /// Shape: [N, in_channels, h, w] to [N, out_channels, h, w].
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("0", conv);
    visit("1", norm);
    visit("2", relu);
  }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::ReLU relu;
};
TORCH_MODULE(ASPPConv);

/// The mean of the whole image, at every pixel, of an `ASPP`.
class ASPPPoolingImpl : public Composite<ASPPPoolingImpl> {
 public:
  ASPPPoolingImpl(std::int64_t in_channels, std::int64_t out_channels);
  /// Shape: [N, in_channels, h, w] to [N, out_channels, h, w].
  /// Errors: in training, throws kInvalidArgument (E_BATCH_OF_ONE) for one
  /// image: it normalises one number of each image.
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("0", pool);
    visit("1", conv);
    visit("2", norm);
    visit("3", relu);
  }

  torch::nn::AdaptiveAvgPool2d pool;
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::ReLU relu;
};
TORCH_MODULE(ASPPPooling);

/// Atrous spatial pyramid pooling (Chen et al. 2017, arXiv:1706.05587): five
/// views of one map, side by side, projected to one again.
class ASPPImpl : public Composite<ASPPImpl> {
 public:
  explicit ASPPImpl(std::int64_t in_channels);
  /// Shape: [N, in_channels, h, w] to [N, 256, h, w].
  /// Errors: as `ASPPPoolingImpl::forward`; throws kInvalidArgument if one of
  /// `convs` is neither a Sequential nor one of the classes above.
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("convs", convs);
    visit("project", project);
  }

  /// A Sequential, an ASPPConv for each dilation (12, 24, 36), an ASPPPooling.
  torch::nn::ModuleList convs;
  torch::nn::Sequential project;
};
TORCH_MODULE(ASPP);

/// An `ASPP`, then a 3x3 convolution, then a 1x1 one to classes.
class DeepLabHeadImpl : public Composite<DeepLabHeadImpl> {
 public:
  DeepLabHeadImpl(std::int64_t in_channels, std::int64_t num_classes);
  /// Shape: [N, in_channels, h, w] to [N, num_classes, h, w].
  /// Errors: as `ASPPImpl::forward`.
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("0", aspp);
    visit("1", conv);
    visit("2", norm);
    visit("3", relu);
    visit("4", last);
  }

  ASPP aspp;
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d norm;
  torch::nn::ReLU relu;
  torch::nn::Conv2d last;
};
TORCH_MODULE(DeepLabHead);

/// What FCN and DeepLabV3 have in common: all but the head.
class SegmentationModel : public Model {
 public:
  /// torchvision's `out["out"]`: scores at the size of the images, enlarged
  /// bilinearly (`align_corners` is false).
  /// Shape: [N, C, H, W] float32 to [N, num_classes, H, W].
  at::Tensor forward(const at::Tensor& x) override;

  /// `out["out"]` and `out["aux"]`: Note [Auxiliary classifier].
  /// Shape: [N, C, H, W] float32 to [N, num_classes, H, W], twice.
  /// Errors: throws kInvalidArgument (E_MODEL_OPTION) without the second head.
  std::tuple<at::Tensor, at::Tensor> forward_with_aux(const at::Tensor& x);

  IntermediateLayerGetter backbone = nullptr;
  /// Empty unless `ModelOptions::aux_loss` was set.
  FCNHead aux_classifier = nullptr;

 protected:
  /// The head's scores, as small as `maps` of layer 4.
  virtual at::Tensor classify(const at::Tensor& maps) = 0;

  /// Makes the backbone, then the second head if there is to be one: in
  /// torchvision's order of draws, both come before the head.
  void make_parts(const ResNetLayout& layout, const ModelOptions& options);
  /// Replaces `backbone.conv1` if `in_channels` is not 3: after the head.
  void adapt_stem(const ModelOptions& options);
};

/// Fully convolutional network (Long et al. 2015, arXiv:1411.4038), as
/// torchvision has it: on a ResNet of which layers 3 and 4 are dilated.
class FCN : public Composite<FCN, SegmentationModel> {
 public:
  FCN(const ResNetLayout& layout, const ModelOptions& options);

  template <class Visit>
  void each_child(Visit visit) {
    visit("backbone", backbone);
    visit("classifier", classifier);
    visit("aux_classifier", aux_classifier);
  }

  FCNHead classifier = nullptr;

 protected:
  at::Tensor classify(const at::Tensor& maps) override;
};

/// DeepLabV3 (Chen et al. 2017, arXiv:1706.05587) on the same ResNet.
class DeepLabV3 : public Composite<DeepLabV3, SegmentationModel> {
 public:
  DeepLabV3(const ResNetLayout& layout, const ModelOptions& options);

  template <class Visit>
  void each_child(Visit visit) {
    visit("backbone", backbone);
    visit("classifier", classifier);
    visit("aux_classifier", aux_classifier);
  }

  DeepLabHead classifier = nullptr;

 protected:
  at::Tensor classify(const at::Tensor& maps) override;
};

/// Torchvision has those of 50 and 101 layers, with 21 classes where nothing
/// else is asked for. Those of 18 and 34 are ours: smaller, and their dilated
/// blocks are no torchvision's (`BlockOptions::dilation`).
std::shared_ptr<FCN> fcn_resnet18(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<FCN> fcn_resnet34(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<FCN> fcn_resnet50(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<FCN> fcn_resnet101(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<DeepLabV3> deeplabv3_resnet18(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<DeepLabV3> deeplabv3_resnet34(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<DeepLabV3> deeplabv3_resnet50(
    const ModelOptions& options = {.num_classes = 21});
std::shared_ptr<DeepLabV3> deeplabv3_resnet101(
    const ModelOptions& options = {.num_classes = 21});

} // namespace lockstep
#pragma GCC visibility pop
