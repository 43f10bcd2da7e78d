// SPDX-License-Identifier: BSD-3-Clause
//
// U-Net (Ronneberger, Fischer and Brox 2015, arXiv:1505.04597): a score of each
// class for each pixel. Names and shapes are those of the repository
// milesial/Pytorch-UNet 3.0 and of its weight files, `bilinear` off:
//   inc.double_conv.0.weight, down1.maxpool_conv.1.double_conv.0.weight,
//   up1.up.weight, up1.conv.double_conv.0.weight, outc.conv.weight
// Unlike the paper's, its convolutions are padded and normalised, so that maps
// keep their sizes.
//   auto net = unet({.num_classes = 2});
//   at::Tensor labels = net->forward(images).argmax(1);  // [N, H, W]
#pragma once

#include <cstdint>
#include <memory>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include "lockstep/models/model.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Two 3x3 convolutions, each with a batch norm and a ReLU.
class DoubleConvImpl : public Composite<DoubleConvImpl> {
 public:
  DoubleConvImpl(std::int64_t in_channels, std::int64_t out_channels);
  /// Shape: [N, in_channels, H, W] to [N, out_channels, H, W].
  /// Errors: in training, throws kInvalidArgument (E_BATCH_OF_ONE) for one
  /// image with maps of 1 x 1.
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("double_conv", double_conv);
  }

  torch::nn::Sequential double_conv;
};
TORCH_MODULE(DoubleConv);

/// A 2x2 pooling, then a `DoubleConv`.
class UNetDownImpl : public Composite<UNetDownImpl> {
 public:
  UNetDownImpl(std::int64_t in_channels, std::int64_t out_channels);
  /// Shape: [N, in_channels, H, W] to [N, out_channels, H / 2, W / 2], rounded
  /// down. Errors: as `DoubleConvImpl::forward`.
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("maxpool_conv", maxpool_conv);
  }

  torch::nn::Sequential maxpool_conv;
};
TORCH_MODULE(UNetDown);

/// A 2x2 transposed convolution with stride 2, then a `DoubleConv` over the map
/// of the way down and this one.
class UNetUpImpl : public Composite<UNetUpImpl> {
 public:
  UNetUpImpl(std::int64_t in_channels, std::int64_t out_channels);
  /// Where a side of `skip` is odd, the enlarged map lacks a row or a column:
  /// zeros at the end stand for it.
  /// Shape: [N, in_channels, h, w] and [N, in_channels / 2, H, W] with h = H /
  /// 2 and w = W / 2, rounded down, to [N, out_channels, H, W].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip);

  template <class Visit>
  void each_child(Visit visit) {
    visit("up", up);
    visit("conv", conv);
  }

  torch::nn::ConvTranspose2d up;
  DoubleConv conv;
};
TORCH_MODULE(UNetUp);

/// A 1x1 convolution to classes.
class UNetOutImpl : public Composite<UNetOutImpl> {
 public:
  UNetOutImpl(std::int64_t in_channels, std::int64_t num_classes);
  /// Shape: [N, in_channels, H, W] to [N, num_classes, H, W].
  at::Tensor forward(const at::Tensor& x);

  template <class Visit>
  void each_child(Visit visit) {
    visit("conv", conv);
  }

  torch::nn::Conv2d conv;
};
TORCH_MODULE(UNetOut);

/// Size of a `UNet`.
struct UNetOptions {
  std::int64_t num_classes = 2;
  std::int64_t in_channels = 3;
  /// Units: channels at full resolution. Each of the four steps down has twice
  /// as many as the one before.
  std::int64_t base_channels = 64;
};

/// Four steps down, four up. Weights are PyTorch's defaults, as the
/// repository's.
class UNet : public Composite<UNet, Model> {
 public:
  /// Errors: throws kInvalidArgument (E_MODEL_OPTION) for a number below 1.
  explicit UNet(const UNetOptions& options = {});
  /// Shape: [N, C, H, W] float32 to [N, num_classes, H, W].
  /// Errors: throws kInvalidArgument for images below 16 x 16 (E_IMAGE_SIZE),
  /// of which four poolings leave nothing; as `DoubleConvImpl::forward`.
  at::Tensor forward(const at::Tensor& x) override;

  template <class Visit>
  void each_child(Visit visit) {
    visit("inc", inc);
    visit("down1", down1);
    visit("down2", down2);
    visit("down3", down3);
    visit("down4", down4);
    visit("up1", up1);
    visit("up2", up2);
    visit("up3", up3);
    visit("up4", up4);
    visit("outc", outc);
  }

  DoubleConv inc = nullptr;
  UNetDown down1 = nullptr;
  UNetDown down2 = nullptr;
  UNetDown down3 = nullptr;
  UNetDown down4 = nullptr;
  UNetUp up1 = nullptr;
  UNetUp up2 = nullptr;
  UNetUp up3 = nullptr;
  UNetUp up4 = nullptr;
  UNetOut outc = nullptr;
};

/// The paper's size: 31 million parameters.
std::shared_ptr<UNet> unet(const ModelOptions& options = {.num_classes = 2});
/// The same with 16 base channels: 1.9 million parameters.
std::shared_ptr<UNet> unet_small(
    const ModelOptions& options = {.num_classes = 2});

} // namespace lockstep
#pragma GCC visibility pop
