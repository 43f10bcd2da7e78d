// SPDX-License-Identifier: BSD-3-Clause
//
// Image files as a trained model sees them: the samples of an image folder,
// bit for bit; squares over an image, and masks of them.
#include "lockstep/data/internal/image_files.h"

#include <cstring>
#include <filesystem>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "lockstep/data/augment.h"
#include "lockstep/data/internal/resized_dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/open_dataset.h"
#include "tests/support/scratch_dir.h"
#include "tests/user/support.h"

namespace lockstep::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Every pixel another colour.
Image pattern(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image image{
      .shape = {.channels = channels, .height = height, .width = width}};
  for (std::int64_t i = 0; i < image.shape.numel(); ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  }
  return image;
}

class ImageFilesTest : public testing::Test {
 protected:
  ImageFilesTest() {
    std::filesystem::create_directories(dir_ / "in/a");
    write_png(path(0), pattern(40, 30, 3));
    write_png(path(1), pattern(16, 16, 3));
    write_png(path(2), pattern(20, 50, 1));
  }
  [[nodiscard]] std::string path(int i) const {
    return dir_ / ("in/a/" + std::to_string(i) + ".png");
  }
  [[nodiscard]] std::vector<std::string> paths() const {
    return {path(0), path(1), path(2)};
  }
  void put(const std::string& file, std::string_view bytes) {
    const auto out = real_fs().create(file, 0644).value();
    out->write(as_byte_span(bytes)).value();
    out->close().value();
  }
  const test::ScratchDir dir_;
};

at::Tensor all_of(const std::shared_ptr<const Dataset>& data) {
  Loader<Batch> loader(data, {.batch_size = 8, .workers = 2});
  loader.start_epoch({0, 1, 2}, 0);
  return loader.next().value().images;
}

TEST_F(ImageFilesTest, PngsComeBackAsTheyWere) {
  for (const std::int64_t channels : {1, 3}) {
    const Image image = pattern(7, 5, channels);
    write_png(dir_ / "x.png", image);
    const Image again = read_image(dir_ / "x.png", {.channels = channels});
    EXPECT_EQ(again.shape, image.shape);
    EXPECT_EQ(again.pixels, image.pixels);
  }
  const auto error =
      test::error_if_any([&] { write_png(dir_ / "none.png", {}); });
  EXPECT_THAT(error.value_or(Error{}).message, HasSubstr("0 x 0"));
}

TEST_F(ImageFilesTest, SamplesAreThoseOfTheFolder) {
  const auto folder = image_folder(
      dir_ / "in",
      {.size = 24,
       .transform = {.mean = {0.1F, 0.2F, 0.3F}, .std = {1, 2, 3}}});
  const PixelFormat format = folder->pixel_format();
  EXPECT_THAT(format.shape, ElementsAre(3, 24, 24));
  EXPECT_THAT(format.std, ElementsAre(1, 2, 3));
  const auto files = std::make_shared<ImageFiles>(paths(), format);
  EXPECT_EQ(files->sample_name(1), path(1));
  EXPECT_TRUE(at::equal(all_of(files), all_of(folder)));
  EXPECT_EQ(files->target_format().kind, TargetKind::kNone);
}

TEST_F(ImageFilesTest, ThePixelFormatGoesThroughOtherDataSets) {
  const auto folder = image_folder(dir_ / "in", {.size = 24});
  const auto part = subset(folder, std::vector{2, 0});
  EXPECT_EQ(part->pixel_format(), folder->pixel_format());
  const ResizedDataset resized(part, 8, 8);
  EXPECT_EQ(resized.pixel_format(), folder->pixel_format());
  EXPECT_THAT(resized.sample_shape(), ElementsAre(3, 8, 8));
  EXPECT_FALSE(RandomDataset(2, 3).pixel_format().is_known());
}

TEST_F(ImageFilesTest, ABadFileIsNamedOrSkipped) {
  put(dir_ / "bad.png", "no image");
  const PixelFormat format{{3, 8, 8}, {0, 0, 0}, {1, 1, 1}};
  const std::vector<std::string> some{
      path(0),
      dir_ / "bad.png",
      dir_ / "none.png"};
  const auto stopping = std::make_shared<ImageFiles>(some, format);
  const auto error = test::error_if_any([&] { all_of(stopping); });
  EXPECT_EQ(error.value_or(Error{}).path, dir_ / "bad.png");
  EXPECT_EQ(error.value_or(Error{}).detail, "E_IMAGE_FORMAT");
  const auto skipping =
      std::make_shared<ImageFiles>(some, format, OnBadImage::kSkip);
  const at::Tensor samples = all_of(skipping);
  EXPECT_FALSE(skipping->error_of(0));
  EXPECT_EQ(skipping->error_of(1).value().detail, "E_IMAGE_FORMAT");
  EXPECT_EQ(skipping->error_of(2).value().code, ErrorCode::kNotFound);
  EXPECT_GT(samples[0].abs().sum().item<float>(), 0);
  EXPECT_EQ(samples[1].abs().sum().item<float>(), 0);
}

TEST_F(ImageFilesTest, ImagesThatAreNoSquaresAreTakenInTheirSize) {
  const PixelFormat format{{1, 20, 50}, {0}, {1}};
  const auto files = std::make_shared<ImageFiles>(
      std::vector<std::string>(3, path(2)),
      format);
  const Image image = pattern(20, 50, 1);
  const at::Tensor samples = all_of(files);
  EXPECT_FLOAT_EQ(
      samples[1][0][3][7].item<float>(),
      static_cast<float>(image.pixels[3 * 50 + 7]) / 255.0F);
  const auto other = std::make_shared<ImageFiles>(paths(), format);
  EXPECT_EQ(
      test::error_if_any([&] { all_of(other); }).value_or(Error{}).detail,
      "E_IMAGE_SIZE");
}

TEST(ImageSquares, CoverTheImageEvenly) {
  const auto lefts = [](std::int64_t height, std::int64_t width) {
    std::vector<std::int64_t> starts;
    for (const ImageSquare& square :
         squares_over({.channels = 3, .height = height, .width = width})) {
      starts.push_back(square.left + square.top);
      EXPECT_EQ(square.side, std::min(height, width));
    }
    return starts;
  };
  EXPECT_THAT(lefts(10, 10), ElementsAre(0));
  EXPECT_THAT(lefts(10, 11), ElementsAre(0, 1));
  EXPECT_THAT(lefts(25, 10), ElementsAre(0, 7, 15));
  EXPECT_THAT(lefts(1, 4), ElementsAre(0, 1, 2, 3));
}

TEST(ImageSquares, MasksOfTheSquaresAreTheMask) {
  // Each square is its own mask, so the whole is the image again.
  for (const auto& [height, width] :
       {std::pair(6, 6), std::pair(6, 15), std::pair(13, 6)}) {
    const Image image = pattern(height, width, 1);
    const auto squares = squares_over(image.shape);
    std::vector<Image> masks;
    for (const ImageSquare& square : squares) {
      masks.push_back(cut(image, square));
    }
    const Image whole = join_masks(image.shape, squares, masks);
    EXPECT_EQ(whole.shape, image.shape);
    EXPECT_EQ(whole.pixels, image.pixels);
  }
}

TEST(ImageSquares, SmallMasksAreMagnifiedToTheNearestPixel) {
  const ImageShape shape{.channels = 3, .height = 4, .width = 4};
  const Image mask{
      .shape = {.channels = 1, .height = 2, .width = 2},
      .pixels = {1, 2, 3, 4}};
  EXPECT_THAT(
      join_masks(shape, squares_over(shape), {mask}).pixels,
      ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4));
}

TEST_F(ImageFilesTest, SquaresOfASquareAreTheSample) {
  const PixelFormat format{{3, 24, 24}, {0.5F, 0.5F, 0.5F}, {1, 1, 1}};
  const ImageFiles files(paths(), format);
  const CutImage image = files.read_squares(1);
  EXPECT_EQ(image.squares.size(), 1U);
  std::vector<float> sample(static_cast<std::size_t>(3 * 24 * 24));
  const std::int64_t index = 1;
  files.read({&index, 1}, 0, sample, {});
  EXPECT_EQ(
      std::memcmp(
          sample.data(),
          image.samples.const_data_ptr<float>(),
          sample.size() * sizeof(float)),
      0);
  EXPECT_EQ(files.read_squares(0).samples.size(0), 2) << "40 x 30";
}

} // namespace
} // namespace lockstep::internal
