// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/sample_picture.h"

#include <array>

#include <gmock/gmock.h>

#include "lockstep/data/internal/class_color.h"

namespace lockstep::internal {
namespace {

using ::testing::ElementsAre;

TEST(SamplePicture, UndoesWhatTheDataSetMadeOfPixels) {
  const PixelFormat format{
      .shape = {3, 1, 1},
      .mean = {0.5F, 0.0F, 0.0F},
      .std = {0.5F, 1.0F, 1.0F}};
  const std::vector<float> numbers{1.0F, 0.2F, 7.0F};
  const Image image =
      sample_picture(numbers, {.channels = 3, .height = 1, .width = 1}, format);
  EXPECT_THAT(image.pixels, ElementsAre(255, 51, 255));
}

TEST(SamplePicture, OfUnknownNumbersTheLowestIsBlack) {
  const std::vector<float> numbers{-2.0F, 0.0F, 2.0F};
  const Image image =
      sample_picture(numbers, {.channels = 1, .height = 1, .width = 3}, {});
  EXPECT_THAT(image.pixels, ElementsAre(0, 0, 0, 128, 128, 128, 255, 255, 255));
  const std::vector<float> equal{3.0F};
  EXPECT_THAT(
      sample_picture(equal, {.channels = 1, .height = 1, .width = 1}, {})
          .pixels,
      ElementsAre(0, 0, 0));
}

TEST(MaskPicture, HasTheColoursOfTheClasses) {
  const std::array<std::int64_t, 2> classes{1, 255};
  const Image image = mask_picture(classes, /*height=*/2, /*width=*/1);
  const Color first = class_color(1);
  EXPECT_EQ(image.pixels[0], first[0]);
  EXPECT_EQ(image.pixels[5], class_color(255)[2]);
  EXPECT_EQ(image.shape.height, 2);
}

TEST(Thumbnail, AveragesSquares) {
  Image image{.shape = {.channels = 3, .height = 2, .width = 5}};
  for (int i = 0; i < 30; ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(i / 3 * 10));
  }
  const Image small = thumbnail(image, /*longest=*/3);
  EXPECT_EQ(small.shape.width, 2);
  EXPECT_EQ(small.shape.height, 1);
  EXPECT_EQ(small.pixels[0], (0 + 10 + 50 + 60) / 4);
  EXPECT_EQ(thumbnail(image, /*longest=*/5).pixels, image.pixels);
}

TEST(SideBySide, KeepsEachRow) {
  const Image left{
      .shape = {.channels = 3, .height = 2, .width = 1},
      .pixels = {1, 1, 1, 2, 2, 2}};
  const Image right{
      .shape = {.channels = 3, .height = 2, .width = 1},
      .pixels = {3, 3, 3, 4, 4, 4}};
  EXPECT_THAT(
      side_by_side(std::array{left, right}).pixels,
      ElementsAre(1, 1, 1, 3, 3, 3, 2, 2, 2, 4, 4, 4));
}

} // namespace
} // namespace lockstep::internal
