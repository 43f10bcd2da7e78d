// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/unet.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/pooling.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/models/internal/build.h"

namespace lockstep {

using internal::inplace_relu;
using internal::through;

namespace {

namespace nn = torch::nn;

constexpr std::int64_t kSmallestUNetImage = 16;

void add_conv(nn::Sequential& layers, std::int64_t in, std::int64_t out) {
  layers->push_back(
      nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false)));
  layers->push_back(nn::BatchNorm2d(out));
  layers->push_back(inplace_relu());
}

// `map` with zeros around it, at the height and width of `like`; of an odd
// number of rows or columns the larger half stands at the end.
at::Tensor padded(const at::Tensor& map, const at::Tensor& like) {
  const std::int64_t rows = like.size(2) - map.size(2);
  const std::int64_t columns = like.size(3) - map.size(3);
  if (rows == 0 && columns == 0) {
    return map;
  }
  return at::constant_pad_nd(
      map,
      {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
}

void check_options(const UNetOptions& options) {
  for (const auto& [field, value] :
       {std::pair{"num_classes", options.num_classes},
        std::pair{"in_channels", options.in_channels},
        std::pair{"base_channels", options.base_channels}}) {
    if (value < 1) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "models.unet",
           .message = format("{}: expected 1 or more, got {}", field, value),
           .detail = "E_MODEL_OPTION"});
    }
  }
}

} // namespace

DoubleConvImpl::DoubleConvImpl(
    std::int64_t in_channels,
    std::int64_t out_channels) {
  add_conv(double_conv, in_channels, out_channels);
  add_conv(double_conv, out_channels, out_channels);
  register_children();
}

at::Tensor DoubleConvImpl::forward(const at::Tensor& x) {
  return through(*double_conv, x);
}

UNetDownImpl::UNetDownImpl(
    std::int64_t in_channels,
    std::int64_t out_channels) {
  maxpool_conv->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(2)));
  maxpool_conv->push_back(DoubleConv(in_channels, out_channels));
  register_children();
}

at::Tensor UNetDownImpl::forward(const at::Tensor& x) {
  return maxpool_conv->forward(x);
}

UNetUpImpl::UNetUpImpl(std::int64_t in_channels, std::int64_t out_channels)
    : up(nn::ConvTranspose2dOptions(in_channels, in_channels / 2, 2).stride(2)),
      conv(in_channels, out_channels) {
  register_children();
}

at::Tensor UNetUpImpl::forward(const at::Tensor& x, const at::Tensor& skip) {
  const at::Tensor map = padded(up->forward(x), skip);
  return conv->forward(at::cat({skip, map}, /*dim=*/1));
}

UNetOutImpl::UNetOutImpl(std::int64_t in_channels, std::int64_t num_classes)
    : conv(nn::Conv2dOptions(in_channels, num_classes, 1)) {
  register_children();
}

at::Tensor UNetOutImpl::forward(const at::Tensor& x) {
  return conv->forward(x);
}

UNet::UNet(const UNetOptions& options) {
  check_options(options);
  const std::int64_t base = options.base_channels;
  inc = DoubleConv(options.in_channels, base);
  down1 = UNetDown(base, base * 2);
  down2 = UNetDown(base * 2, base * 4);
  down3 = UNetDown(base * 4, base * 8);
  down4 = UNetDown(base * 8, base * 16);
  up1 = UNetUp(base * 16, base * 8);
  up2 = UNetUp(base * 8, base * 4);
  up3 = UNetUp(base * 4, base * 2);
  up4 = UNetUp(base * 2, base);
  outc = UNetOut(base, options.num_classes);
  register_children();
}

at::Tensor UNet::forward(const at::Tensor& x) {
  if (x.dim() == 4 && std::min(x.size(2), x.size(3)) < kSmallestUNetImage) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.unet",
         .message = format(
             "images are too small: expected at least {0} x {0}, got {1} x {2}",
             kSmallestUNetImage,
             x.size(2),
             x.size(3)),
         .hint = "enlarge them, or take an FCN",
         .detail = "E_IMAGE_SIZE"});
  }
  const at::Tensor full = inc->forward(x);
  const at::Tensor half = down1->forward(full);
  const at::Tensor quarter = down2->forward(half);
  const at::Tensor eighth = down3->forward(quarter);
  at::Tensor out = up1->forward(down4->forward(eighth), eighth);
  out = up2->forward(out, quarter);
  out = up3->forward(out, half);
  return outc->forward(up4->forward(out, full));
}

std::shared_ptr<UNet> unet(const ModelOptions& options) {
  return std::make_shared<UNet>(UNetOptions{
      .num_classes = options.num_classes,
      .in_channels = options.in_channels});
}

std::shared_ptr<UNet> unet_small(const ModelOptions& options) {
  return std::make_shared<UNet>(UNetOptions{
      .num_classes = options.num_classes,
      .in_channels = options.in_channels,
      .base_channels = 16});
}

} // namespace lockstep
