// SPDX-License-Identifier: BSD-3-Clause
//
// Layers are built in torchvision's order: each draws from the generator.
#include "lockstep/models/segmentation.h"

#include <array>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/internal/build.h"
#include "lockstep/tensor/norm_relu.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

using internal::check_norm_input;
using internal::exactly;
using internal::through;

namespace {

namespace nn = torch::nn;

constexpr std::int64_t kAsppWidth = 256;
constexpr std::array<std::int64_t, 3> kAsppDilations{12, 24, 36};

nn::Conv2d conv1x1(std::int64_t in, std::int64_t out) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, 1).bias(false));
  return layer;
}

nn::Conv2d
conv3x3(std::int64_t in, std::int64_t out, std::int64_t dilation = 1) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, 3)
                       .padding(dilation)
                       .dilation(dilation)
                       .bias(false));
  return layer;
}

/// With a bias for each class.
nn::Conv2d to_classes(std::int64_t in, std::int64_t num_classes) {
  nn::Conv2d layer(nn::Conv2dOptions(in, num_classes, 1));
  return layer;
}

// `maps` at the height and width of `like`.
at::Tensor enlarged(const at::Tensor& maps, const at::Tensor& like) {
  return at::upsample_bilinear2d(
      maps,
      like.sizes().slice(2),
      /*align_corners=*/false);
}

at::Tensor aspp_branch(nn::Module& module, const at::Tensor& x) {
  if (auto* const conv = exactly<ASPPConvImpl>(module)) {
    return conv->forward(x);
  }
  if (auto* const pooling = exactly<ASPPPoolingImpl>(module)) {
    return pooling->forward(x);
  }
  if (auto* const layers = exactly<nn::SequentialImpl>(module)) {
    return through(*layers, x);
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "models.ASPP",
       .message = format(
           "convs: expected Sequential, ASPPConv or ASPPPooling, got {}",
           class_name(module)),
       .hint = "put the module into a Sequential"});
}

// Torchvision's choice for both networks: layers 3 and 4 keep an eighth of the
// image's resolution.
constexpr ResNetLayout dilated(ResNetLayout layout) {
  layout.replace_stride_with_dilation = {false, true, true};
  return layout;
}

constexpr ResNetLayout kDilated18 = dilated({.blocks = {2, 2, 2, 2}});
constexpr ResNetLayout kDilated34 = dilated({.blocks = {3, 4, 6, 3}});
constexpr ResNetLayout kDilated50 =
    dilated({.is_bottleneck = true, .blocks = {3, 4, 6, 3}});
constexpr ResNetLayout kDilated101 =
    dilated({.is_bottleneck = true, .blocks = {3, 4, 23, 3}});

} // namespace

IntermediateLayerGetterImpl::IntermediateLayerGetterImpl(const ResNet& net)
    : conv1(net.conv1),
      bn1(net.bn1),
      relu(net.relu),
      maxpool(net.maxpool),
      layer1(net.layer1),
      layer2(net.layer2),
      layer3(net.layer3),
      layer4(net.layer4) {
  register_children();
}

std::tuple<at::Tensor, at::Tensor> IntermediateLayerGetterImpl::forward(
    const at::Tensor& x) {
  at::Tensor out = batch_norm_relu(bn1, conv1->forward(x));
  out = layer2->forward(layer1->forward(maxpool->forward(out)));
  at::Tensor aux = layer3->forward(out);
  out = layer4->forward(aux);
  return {std::move(out), std::move(aux)};
}

FCNHeadImpl::FCNHeadImpl(std::int64_t in_channels, std::int64_t num_classes)
    : conv(conv3x3(in_channels, in_channels / 4)),
      norm(in_channels / 4),
      dropout(0.1),
      last(to_classes(in_channels / 4, num_classes)) {
  register_children();
}

at::Tensor FCNHeadImpl::forward(const at::Tensor& x) {
  at::Tensor out = conv->forward(x);
  check_norm_input(*norm, out);
  out = batch_norm_relu(norm, out);
  return last->forward(dropout->forward(out));
}

ASPPConvImpl::ASPPConvImpl(
    std::int64_t in_channels,
    std::int64_t out_channels,
    std::int64_t dilation)
    : conv(conv3x3(in_channels, out_channels, dilation)), norm(out_channels) {
  register_children();
}

at::Tensor ASPPConvImpl::forward(const at::Tensor& x) {
  const at::Tensor out = conv->forward(x);
  check_norm_input(*norm, out);
  return batch_norm_relu(norm, out);
}

ASPPPoolingImpl::ASPPPoolingImpl(
    std::int64_t in_channels,
    std::int64_t out_channels)
    : pool(nn::AdaptiveAvgPool2dOptions({1, 1})),
      conv(conv1x1(in_channels, out_channels)),
      norm(out_channels) {
  register_children();
}

at::Tensor ASPPPoolingImpl::forward(const at::Tensor& x) {
  const at::Tensor out = conv->forward(pool->forward(x));
  check_norm_input(*norm, out);
  return enlarged(batch_norm_relu(norm, out), x);
}

ASPPImpl::ASPPImpl(std::int64_t in_channels) {
  convs->push_back(nn::Sequential(
      conv1x1(in_channels, kAsppWidth),
      nn::BatchNorm2d(kAsppWidth),
      nn::ReLU()));
  for (const std::int64_t dilation : kAsppDilations) {
    convs->push_back(ASPPConv(in_channels, kAsppWidth, dilation));
  }
  convs->push_back(ASPPPooling(in_channels, kAsppWidth));
  const auto views = static_cast<std::int64_t>(convs->size());
  project = nn::Sequential(
      conv1x1(views * kAsppWidth, kAsppWidth),
      nn::BatchNorm2d(kAsppWidth),
      nn::ReLU(),
      nn::Dropout(0.5));
  register_children();
}

at::Tensor ASPPImpl::forward(const at::Tensor& x) {
  std::vector<at::Tensor> views;
  views.reserve(convs->size());
  for (const std::shared_ptr<nn::Module>& module : *convs) {
    views.push_back(aspp_branch(*module, x));
  }
  return through(*project, at::cat(views, /*dim=*/1));
}

DeepLabHeadImpl::DeepLabHeadImpl(
    std::int64_t in_channels,
    std::int64_t num_classes)
    : aspp(in_channels),
      conv(conv3x3(kAsppWidth, kAsppWidth)),
      norm(kAsppWidth),
      last(to_classes(kAsppWidth, num_classes)) {
  register_children();
}

at::Tensor DeepLabHeadImpl::forward(const at::Tensor& x) {
  const at::Tensor out = conv->forward(aspp->forward(x));
  check_norm_input(*norm, out);
  return last->forward(batch_norm_relu(norm, out));
}

at::Tensor SegmentationModel::forward(const at::Tensor& x) {
  return enlarged(classify(std::get<0>(backbone->forward(x))), x);
}

std::tuple<at::Tensor, at::Tensor> SegmentationModel::forward_with_aux(
    const at::Tensor& x) {
  if (aux_classifier.is_empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.forward",
         .message = "the model has no auxiliary classifier",
         .hint = "make it with .aux_loss = true",
         .detail = "E_MODEL_OPTION"});
  }
  const auto [maps, aux_maps] = backbone->forward(x);
  at::Tensor out = enlarged(classify(maps), x);
  return {std::move(out), enlarged(aux_classifier->forward(aux_maps), x)};
}

void SegmentationModel::make_parts(
    const ResNetLayout& layout,
    const ModelOptions& options) {
  backbone = IntermediateLayerGetter(ResNet(layout));
  if (options.aux_loss) {
    aux_classifier = FCNHead(layout.width(3), options.num_classes);
  }
}

void SegmentationModel::adapt_stem(const ModelOptions& options) {
  if (options.in_channels != 3) {
    backbone->conv1 = backbone->replace_module(
        "conv1",
        internal::resnet_stem(options.in_channels));
  }
}

FCN::FCN(const ResNetLayout& layout, const ModelOptions& options) {
  make_parts(layout, options);
  classifier = FCNHead(layout.width(4), options.num_classes);
  register_children();
  adapt_stem(options);
}

at::Tensor FCN::classify(const at::Tensor& maps) {
  return classifier->forward(maps);
}

DeepLabV3::DeepLabV3(const ResNetLayout& layout, const ModelOptions& options) {
  make_parts(layout, options);
  classifier = DeepLabHead(layout.width(4), options.num_classes);
  register_children();
  adapt_stem(options);
}

at::Tensor DeepLabV3::classify(const at::Tensor& maps) {
  return classifier->forward(maps);
}

std::shared_ptr<FCN> fcn_resnet18(const ModelOptions& options) {
  return std::make_shared<FCN>(kDilated18, options);
}
std::shared_ptr<FCN> fcn_resnet34(const ModelOptions& options) {
  return std::make_shared<FCN>(kDilated34, options);
}
std::shared_ptr<FCN> fcn_resnet50(const ModelOptions& options) {
  return std::make_shared<FCN>(kDilated50, options);
}
std::shared_ptr<FCN> fcn_resnet101(const ModelOptions& options) {
  return std::make_shared<FCN>(kDilated101, options);
}
std::shared_ptr<DeepLabV3> deeplabv3_resnet18(const ModelOptions& options) {
  return std::make_shared<DeepLabV3>(kDilated18, options);
}
std::shared_ptr<DeepLabV3> deeplabv3_resnet34(const ModelOptions& options) {
  return std::make_shared<DeepLabV3>(kDilated34, options);
}
std::shared_ptr<DeepLabV3> deeplabv3_resnet50(const ModelOptions& options) {
  return std::make_shared<DeepLabV3>(kDilated50, options);
}
std::shared_ptr<DeepLabV3> deeplabv3_resnet101(const ModelOptions& options) {
  return std::make_shared<DeepLabV3>(kDilated101, options);
}

} // namespace lockstep
