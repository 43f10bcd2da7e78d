// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/unet.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/model.h"

namespace lockstep {
namespace {

using Shape = std::vector<std::int64_t>;

std::string detail_of_forward(UNet& net, const Shape& size) {
  try {
    (void)net.forward(torch::randn(size));
  } catch (const Exception& exception) {
    return exception.error().detail;
  }
  return "";
}

TEST(UNet, HasThePapersChannels) {
  UNet net({.num_classes = 3, .in_channels = 1});
  EXPECT_EQ(net.inc->forward(torch::zeros({2, 1, 4, 4})).size(1), 64);
  EXPECT_EQ(net.up1->up->options.in_channels(), 1024);
  EXPECT_EQ(net.outc->conv->options.out_channels(), 3);
  const auto small = unet_small();
  EXPECT_EQ(small->up1->up->options.in_channels(), 256);
}

// What stands where rows are missing: segmentation_golden_test.cpp compares.
TEST(UNet, TakesOddSizes) {
  UNet net({.base_channels = 2});
  const torch::NoGradGuard no_grad;
  for (const Shape& size : {Shape{2, 3, 31, 16}, Shape{1, 3, 17, 99}}) {
    EXPECT_EQ(
        net.forward(torch::randn(size)).sizes(),
        (Shape{size[0], 2, size[2], size[3]}));
  }
}

TEST(UNet, RefusesImagesBelowSixteen) {
  UNet net({.base_channels = 2});
  EXPECT_EQ(detail_of_forward(net, {2, 3, 15, 40}), "E_IMAGE_SIZE");
  EXPECT_EQ(detail_of_forward(net, {2, 3, 16, 16}), "");
  EXPECT_EQ(detail_of_forward(net, {1, 3, 16, 16}), "E_BATCH_OF_ONE");
  EXPECT_EQ(detail_of_forward(net, {1, 3, 16, 32}), "");
  EXPECT_FALSE(image_sizes("unet").takes(15));
}

TEST(UNet, RefusesNoChannels) {
  EXPECT_THROW(UNet({.base_channels = 0}), Exception);
}

// Of white squares on noise, which pixels are the square: learnt in seconds.
TEST(UNet, LearnsSquares) {
  torch::manual_seed(5);
  UNet net({.num_classes = 2, .in_channels = 1, .base_channels = 8});
  torch::optim::Adam adam(net.parameters(), 0.01);
  const auto squares = [](std::int64_t seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    at::Tensor images = torch::randn({8, 1, 32, 32}) * 0.3;
    at::Tensor masks = torch::zeros({8, 32, 32}, torch::kLong);
    for (std::int64_t i = 0; i < 8; ++i) {
      const auto corner = torch::randint(20, {2}, torch::kLong);
      const auto y = corner[0].item<std::int64_t>();
      const auto x = corner[1].item<std::int64_t>();
      masks[i].narrow(0, y, 10).narrow(1, x, 10).fill_(1);
      images[i][0].narrow(0, y, 10).narrow(1, x, 10).add_(1);
    }
    return std::pair{images, masks};
  };
  for (int step = 0; step < 30; ++step) {
    const auto [images, masks] = squares(step);
    adam.zero_grad();
    torch::cross_entropy_loss(net.forward(images), masks).backward();
    adam.step();
  }
  net.eval();
  const torch::NoGradGuard no_grad;
  const auto [images, masks] = squares(1000);
  const at::Tensor found = net.forward(images).argmax(1);
  const auto both = (found * masks).sum().item<double>();
  const auto either = ((found + masks) > 0).sum().item<double>();
  EXPECT_GT(both / either, 0.9) << "intersection over union";
}

} // namespace
} // namespace lockstep
