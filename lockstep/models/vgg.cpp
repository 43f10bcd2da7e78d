// SPDX-License-Identifier: BSD-3-Clause
//
// Layers are built in torchvision's order: each draws from the generator.
#include <algorithm>
#include <array>
#include <memory>

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/internal/build.h"

namespace lockstep {

using internal::adapted;
using internal::inplace_relu;
using internal::through;

namespace {

namespace nn = torch::nn;

constexpr int kPool = 0;
// clang-format off
constexpr std::array kPlanes11{
    64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool};
constexpr std::array kPlanes13{
    64, 64, kPool, 128, 128, kPool, 256, 256, kPool,
    512, 512, kPool, 512, 512, kPool};
constexpr std::array kPlanes16{
    64, 64, kPool, 128, 128, kPool, 256, 256, 256, kPool,
    512, 512, 512, kPool, 512, 512, 512, kPool};
constexpr std::array kPlanes19{
    64, 64, kPool, 128, 128, kPool, 256, 256, 256, 256, kPool,
    512, 512, 512, 512, kPool, 512, 512, 512, 512, kPool};
// clang-format on

constexpr std::int64_t kSmallestImage = 32;
constexpr std::size_t kLastLayer = 6;

nn::Conv2d conv(std::int64_t in, std::int64_t out) {
  nn::Conv2d layer(nn::Conv2dOptions(in, out, 3).padding(1));
  return layer;
}

nn::Sequential make_features(const VGGLayout& layout) {
  nn::Sequential features;
  std::int64_t in = 3;
  for (const int out : layout.planes) {
    if (out == kPool) {
      features->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2)));
      continue;
    }
    features->push_back(conv(in, out));
    if (layout.has_batch_norm) {
      features->push_back(nn::BatchNorm2d(out));
    }
    features->push_back(inplace_relu());
    in = out;
  }
  return features;
}

nn::Sequential make_classifier() {
  nn::Sequential classifier;
  std::int64_t in = std::int64_t{512} * 7 * 7;
  for (int i = 0; i < 2; ++i) {
    classifier->push_back(nn::Linear(in, 4096));
    classifier->push_back(inplace_relu());
    classifier->push_back(nn::Dropout(0.5));
    in = 4096;
  }
  classifier->push_back(nn::Linear(in, 1000));
  return classifier;
}

void initialise_vgg(nn::Module& net) {
  net.apply([](nn::Module& module) {
    if (const auto* conv2d = module.as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(
          conv2d->weight,
          0,
          torch::kFanOut,
          torch::kReLU);
      nn::init::zeros_(conv2d->bias);
    } else if (const auto* linear = module.as<nn::Linear>()) {
      nn::init::normal_(linear->weight, 0, 0.01);
      nn::init::zeros_(linear->bias);
    }
    // Batch norms are born with weight 1 and bias 0.
  });
}

// A Sequential cannot exchange a layer in place.
nn::Sequential with_layer(
    const nn::Sequential& old,
    std::size_t index,
    const nn::AnyModule& layer) {
  nn::Sequential out;
  for (const nn::AnyModule& module : *old) {
    out->push_back(out->size() == index ? layer : module);
  }
  return out;
}

} // namespace

VGG::VGG(const VGGLayout& layout)
    : features(make_features(layout)),
      avgpool(nn::AdaptiveAvgPool2dOptions({7, 7})),
      classifier(make_classifier()) {
  register_children();
  initialise_vgg(*this);
}

at::Tensor VGG::forward(const at::Tensor& x) {
  if (x.dim() == 4 && std::min(x.size(2), x.size(3)) < kSmallestImage) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.vgg",
         .message = format(
             "images are too small: expected at least {0} x {0}, got {1} x {2}",
             kSmallestImage,
             x.size(2),
             x.size(3)),
         .hint = "enlarge them, or take a ResNet",
         .detail = "E_IMAGE_SIZE"});
  }
  const at::Tensor maps = avgpool->forward(through(*features, x));
  return classifier->forward(maps.flatten(1));
}

void adapt_to(VGG& net, const ModelOptions& options) {
  if (options.in_channels != 3) {
    net.features = net.replace_module(
        "features",
        with_layer(
            net.features,
            0,
            nn::AnyModule(conv(options.in_channels, 64))));
  }
  if (options.num_classes != 1000) {
    net.classifier = net.replace_module(
        "classifier",
        with_layer(
            net.classifier,
            kLastLayer,
            nn::AnyModule(nn::Linear(4096, options.num_classes))));
  }
}

std::shared_ptr<VGG> vgg11(const ModelOptions& options) {
  return adapted<VGG>(VGGLayout{.planes = kPlanes11}, options);
}
std::shared_ptr<VGG> vgg13(const ModelOptions& options) {
  return adapted<VGG>(VGGLayout{.planes = kPlanes13}, options);
}
std::shared_ptr<VGG> vgg16(const ModelOptions& options) {
  return adapted<VGG>(VGGLayout{.planes = kPlanes16}, options);
}
std::shared_ptr<VGG> vgg19(const ModelOptions& options) {
  return adapted<VGG>(VGGLayout{.planes = kPlanes19}, options);
}
std::shared_ptr<VGG> vgg11_bn(const ModelOptions& options) {
  return adapted<VGG>(
      VGGLayout{.planes = kPlanes11, .has_batch_norm = true},
      options);
}
std::shared_ptr<VGG> vgg13_bn(const ModelOptions& options) {
  return adapted<VGG>(
      VGGLayout{.planes = kPlanes13, .has_batch_norm = true},
      options);
}
std::shared_ptr<VGG> vgg16_bn(const ModelOptions& options) {
  return adapted<VGG>(
      VGGLayout{.planes = kPlanes16, .has_batch_norm = true},
      options);
}
std::shared_ptr<VGG> vgg19_bn(const ModelOptions& options) {
  return adapted<VGG>(
      VGGLayout{.planes = kPlanes19, .has_batch_norm = true},
      options);
}

} // namespace lockstep
