// SPDX-License-Identifier: BSD-3-Clause
//
// Folders whose pictures are augmented: the same bits however they are read,
// and sheets of what a network sees.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/data/internal/resize_uint8.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSize = 24;

// A smooth picture in colours, another for each `tint`.
Image picture_of(std::int64_t height, std::int64_t width, int tint) {
  Image image{.shape = {.channels = 3, .height = height, .width = width}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (const std::int64_t value :
           {x * 255 / width, y * 255 / height, std::int64_t{tint}}) {
        image.pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return image;
}

class AugmentedFolders : public testing::Test {
 protected:
  AugmentedFolders() {
    for (int i = 0; i < 10; ++i) {
      const std::string folder = dir_ / (i % 2 == 0 ? "train/a" : "train/b");
      fs::create_directories(folder);
      write_png(
          folder + "/" + std::to_string(i) + ".png",
          picture_of(40 + 5 * i, 60 - 2 * i, 20 * i));
    }
    fs::copy(dir_ / "train", dir_ / "val", fs::copy_options::recursive);
  }

  // All of an epoch, from sample `first` on.
  static at::Tensor epoch_of(
      const std::shared_ptr<ImageFolder>& data,
      std::int64_t workers,
      std::int64_t first = 0) {
    Loader loader(data, {.batch_size = 3, .workers = workers});
    std::vector<std::int64_t> indices(static_cast<std::size_t>(data->size()));
    std::iota(indices.begin(), indices.end(), 0);
    indices.erase(indices.begin(), indices.begin() + first);
    loader.start_epoch(indices, /*epoch=*/2);
    std::vector<at::Tensor> parts;
    while (const auto batch = loader.next()) {
      parts.push_back(batch->images);
    }
    return at::cat(parts);
  }

  const test::ScratchDir dir_;
};

TEST_F(AugmentedFolders, AreTheSameForAnyWorkersAndFromTheMiddle) {
  for (const char* name : {"light", "standard", "strong"}) {
    const auto open = [&] {
      return image_folders(
                 dir_.path(),
                 {.size = kSize,
                  .transform = {.seed = 5},
                  .augment = named_augment(name)})
          .first;
    };
    const at::Tensor whole = epoch_of(open(), 1);
    EXPECT_TRUE(at::equal(whole, epoch_of(open(), 4))) << name;
    EXPECT_TRUE(at::equal(whole.slice(0, 4), epoch_of(open(), 4, 4))) << name;
  }
}

TEST_F(AugmentedFolders, ChangeWithTheEpochAndOnlyInTraining) {
  const auto [train, val] = image_folders(
      dir_.path(),
      {.size = kSize, .augment = named_augment("strong")});
  EXPECT_NE(train->picture(0, 0).pixels, train->picture(0, 1).pixels);
  EXPECT_EQ(val->picture(0, 0).pixels, val->picture(0, 1).pixels);
  EXPECT_EQ(val->picture(0, 0).pixels, val->plain_picture(0).pixels);
  EXPECT_EQ(train->plain_picture(3).pixels, val->plain_picture(3).pixels);
}

TEST_F(AugmentedFolders, StepsThatNeverHappenGiveThePlainPicture) {
  const auto data = image_folder(
      dir_ / "train",
      {.size = kSize, .augment = {{{.name = "invert", .probability = 0}}}});
  for (std::int64_t i = 0; i < data->size(); ++i) {
    EXPECT_EQ(data->picture(i, 0).pixels, data->plain_picture(i).pixels);
  }
}

TEST_F(AugmentedFolders, RefuseStepsThatAreUnknown) {
  EXPECT_THROW(
      image_folder(dir_ / "train", {.augment = {{{.name = "flop"}}}}),
      Exception);
}

TEST_F(AugmentedFolders, AreOpenedByNameToo) {
  const auto parts = open_dataset(
      "folder",
      dir_.path(),
      {.transform = {.seed = 5},
       .augment = named_augment("standard"),
       .image_size = kSize});
  const auto read = [](const Dataset& data, std::int64_t epoch) {
    std::vector<float> images(3 * kSize * kSize);
    std::int64_t target = 0;
    const std::int64_t index = 0;
    data.read({&index, 1}, epoch, images, std::span(&target, 1));
    return images;
  };
  EXPECT_NE(read(*parts.train, 0), read(*parts.train, 1));
  EXPECT_EQ(read(*parts.test, 0), read(*parts.test, 1));
}

TEST_F(AugmentedFolders, AreShownOnSheets) {
  const auto data = image_folder(
      dir_ / "train",
      {.size = kSize, .augment = named_augment("standard")});
  const Image sheet = augmented_sheet(*data, {.samples = 3, .epochs = 2});
  EXPECT_EQ(
      sheet.shape,
      (ImageShape{
          .channels = 3,
          .height = 3 * (kSize + 2) + 2,
          .width = 3 * (kSize + 2) + 2}));
  const std::string path = dir_ / "sheet.png";
  write_png(path, sheet);
  EXPECT_EQ(read_image(path).pixels, sheet.pixels);
  // The second row begins with sample 10 / 3.
  const internal::Region cell{
      .top = kSize + 4,
      .left = 2,
      .height = kSize,
      .width = kSize};
  EXPECT_EQ(
      internal::resized(sheet, cell, kSize, kSize).pixels,
      data->plain_picture(3).pixels);
}

// A JPEG file is decoded at an eighth where crops are large, at its size where
// a step comes before the sizing.
TEST(AugmentedJpegs, ShowTheSamePlaceAtAnyScale) {
  const test::ScratchDir dir;
  fs::create_directories(dir / "a");
  const std::string path = dir / "a/1.jpg";
  test::run_python("data_large_jpeg.py", {path});
  const Image whole = read_image(path);
  ASSERT_EQ(whole.shape.width, 1600);
  const AugmentStep crop{
      .name = "random_resized_crop",
      .values = {{"scale", {0.3, 1}}}};
  const AugmentStep flip{.name = "horizontal_flip", .probability = 1};
  for (const bool is_first : {true, false}) {
    const Augment augment = is_first ? Augment{{crop}} : Augment{{flip, crop}};
    const auto data =
        image_folder(dir.path(), {.size = kSize, .augment = augment});
    const Augmenter augmenter(augment, {.height = kSize, .width = kSize});
    for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
      const Image seen = data->picture(0, epoch);
      const Image full = augmenter.apply({.image = whole}, epoch, 0).image;
      int largest = 0;
      for (std::size_t i = 0; i < seen.pixels.size(); ++i) {
        largest = std::max(largest, std::abs(seen.pixels[i] - full.pixels[i]));
      }
      EXPECT_LE(largest, is_first ? 6 : 0);
      EXPECT_EQ(largest > 0, is_first);
    }
  }
}

TEST(ContactSheet, PutsSmallAndGreyPicturesInTheMiddle) {
  const Image grey{
      .shape = {.channels = 1, .height = 1, .width = 1},
      .pixels = {7}};
  const Image sheet = contact_sheet({picture_of(3, 5, 0), grey}, 9);
  EXPECT_EQ(sheet.shape, (ImageShape{.channels = 3, .height = 7, .width = 16}));
  const std::size_t at = (3 * 16 + 11) * 3;
  EXPECT_EQ(sheet.pixels[at], 7);
  EXPECT_EQ(sheet.pixels[at + 2], 7);
  EXPECT_EQ(sheet.pixels[at + 3], 255);
  EXPECT_EQ(contact_sheet({grey}, 1).shape.channels, 1);
  EXPECT_THROW(contact_sheet({}, 2), Exception);
  EXPECT_THROW(contact_sheet({grey}, 0), Exception);
}

TEST(PngFiles, KeepColoursAndGrey) {
  const test::ScratchDir dir;
  for (const std::int64_t channels : {1, 3}) {
    Image image{.shape = {.channels = channels, .height = 3, .width = 7}};
    for (std::int64_t i = 0; i < image.shape.numel(); ++i) {
      image.pixels.push_back(static_cast<std::uint8_t>(11 * i));
    }
    write_png(dir / "x.png", image);
    EXPECT_EQ(
        read_image(dir / "x.png", {.channels = channels}).pixels,
        image.pixels);
  }
  EXPECT_THROW(write_png(dir / "x.png", Image{}), Exception);
}

} // namespace
} // namespace lockstep
