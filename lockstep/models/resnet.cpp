// SPDX-License-Identifier: BSD-3-Clause
//
// Layers are built in torchvision's order: each draws from the generator.
#include <torch/nn/init.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/internal/build.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep {

using internal::adapted;
using internal::inplace_relu;
using internal::resnet_stem;

namespace {

namespace nn = torch::nn;

nn::Conv2d conv(
    std::int64_t in,
    std::int64_t out,
    std::int64_t size,
    std::int64_t stride,
    std::int64_t dilation = 1) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, size)
                       .stride(stride)
                       .padding(size / 2 * dilation)
                       .dilation(dilation)
                       .bias(false));
  return layer;
}

// `options`: of the first block; `dilation`: of the others.
template <class Block>
nn::Sequential
layer(BlockOptions options, std::int64_t blocks, std::int64_t dilation) {
  const std::int64_t out = options.planes * Block::kExpansion;
  nn::Sequential downsample(nullptr);
  if (options.stride != 1 || options.in_planes != out) {
    downsample = nn::Sequential();
    downsample->push_back(conv(options.in_planes, out, 1, options.stride));
    downsample->push_back(nn::BatchNorm2d(out));
  }
  nn::Sequential layer;
  layer->push_back(std::make_shared<Block>(options, downsample));
  options.in_planes = out;
  options.stride = 1;
  options.dilation = dilation;
  for (std::int64_t i = 1; i < blocks; ++i) {
    layer->push_back(std::make_shared<Block>(options, nn::Sequential(nullptr)));
  }
  return layer;
}

// Layer `index` (0 to 3) of a network: each has twice the planes of the last.
nn::Sequential layer_at(const ResNetLayout& layout, std::size_t index) {
  std::int64_t before = 1;
  std::int64_t dilation = 1;
  bool is_dilated = false;
  for (std::size_t i = 0; i < index; ++i) {
    before = dilation;
    is_dilated = layout.replace_stride_with_dilation.at(i);
    dilation *= is_dilated ? 2 : 1;
  }
  const BlockOptions options{
      .in_planes = index == 0 ? 64 : layout.width(index),
      .planes = std::int64_t{64} << index,
      .stride = index == 0 || is_dilated ? 1 : 2,
      .dilation = before};
  const std::int64_t blocks = layout.blocks.at(index);
  return layout.is_bottleneck ? layer<Bottleneck>(options, blocks, dilation)
                              : layer<BasicBlock>(options, blocks, dilation);
}

void initialise_resnet(nn::Module& net) {
  net.apply([](nn::Module& module) {
    if (const auto* conv2d = module.as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(
          conv2d->weight,
          0,
          torch::kFanOut,
          torch::kReLU);
    }
    // Batch norms are born with weight 1 and bias 0.
  });
}

} // namespace

BasicBlock::BasicBlock(const BlockOptions& options, nn::Sequential shortcut)
    : conv1(conv(
          options.in_planes,
          options.planes,
          3,
          options.stride,
          options.dilation)),
      bn1(options.planes),
      relu(inplace_relu()),
      conv2(conv(options.planes, options.planes, 3, 1, options.dilation)),
      bn2(options.planes),
      downsample(std::move(shortcut)) {
  register_children();
}

at::Tensor BasicBlock::forward(const at::Tensor& x) {
  at::Tensor out = batch_norm_relu(bn1, conv1->forward(x));
  out = conv2->forward(out);
  return batch_norm_add_relu(bn2, out, [&] {
    return downsample.is_empty() ? x : downsample->forward(x);
  });
}

Bottleneck::Bottleneck(const BlockOptions& options, nn::Sequential shortcut)
    : conv1(conv(options.in_planes, options.planes, 1, 1)),
      bn1(options.planes),
      conv2(conv(
          options.planes,
          options.planes,
          3,
          options.stride,
          options.dilation)),
      bn2(options.planes),
      conv3(conv(options.planes, options.planes * kExpansion, 1, 1)),
      bn3(options.planes * kExpansion),
      relu(inplace_relu()),
      downsample(std::move(shortcut)) {
  register_children();
}

at::Tensor Bottleneck::forward(const at::Tensor& x) {
  at::Tensor out = batch_norm_relu(bn1, conv1->forward(x));
  out = batch_norm_relu(bn2, conv2->forward(out));
  out = conv3->forward(out);
  return batch_norm_add_relu(bn3, out, [&] {
    return downsample.is_empty() ? x : downsample->forward(x);
  });
}

ResNet::ResNet(const ResNetLayout& layout)
    : conv1(resnet_stem(3)),
      bn1(64),
      relu(inplace_relu()),
      maxpool(nn::MaxPool2dOptions(3).stride(2).padding(1)),
      layer1(layer_at(layout, 0)),
      layer2(layer_at(layout, 1)),
      layer3(layer_at(layout, 2)),
      layer4(layer_at(layout, 3)),
      avgpool(nn::AdaptiveAvgPool2dOptions({1, 1})),
      fc(layout.width(4), 1000) {
  register_children();
  initialise_resnet(*this);
}

at::Tensor ResNet::forward(const at::Tensor& x) {
  at::Tensor out = batch_norm_relu(bn1, conv1->forward(x));
  out = maxpool->forward(out);
  for (nn::Sequential* layer : {&layer1, &layer2, &layer3, &layer4}) {
    out = (*layer)->forward(out);
  }
  return fc->forward(avgpool->forward(out).flatten(1));
}

void adapt_to(ResNet& net, const ModelOptions& options) {
  if (options.in_channels != 3) {
    net.conv1 = net.replace_module("conv1", resnet_stem(options.in_channels));
  }
  if (options.num_classes != 1000) {
    net.fc = net.replace_module(
        "fc",
        nn::Linear(net.fc->options.in_features(), options.num_classes));
  }
}

std::shared_ptr<ResNet> resnet18(const ModelOptions& options) {
  return adapted<ResNet>(ResNetLayout{.blocks = {2, 2, 2, 2}}, options);
}
std::shared_ptr<ResNet> resnet34(const ModelOptions& options) {
  return adapted<ResNet>(ResNetLayout{.blocks = {3, 4, 6, 3}}, options);
}
std::shared_ptr<ResNet> resnet50(const ModelOptions& options) {
  return adapted<ResNet>(
      ResNetLayout{.is_bottleneck = true, .blocks = {3, 4, 6, 3}},
      options);
}
std::shared_ptr<ResNet> resnet101(const ModelOptions& options) {
  return adapted<ResNet>(
      ResNetLayout{.is_bottleneck = true, .blocks = {3, 4, 23, 3}},
      options);
}
std::shared_ptr<ResNet> resnet152(const ModelOptions& options) {
  return adapted<ResNet>(
      ResNetLayout{.is_bottleneck = true, .blocks = {3, 8, 36, 3}},
      options);
}

} // namespace lockstep
