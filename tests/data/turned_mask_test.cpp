// SPDX-License-Identifier: BSD-3-Clause
//
// Masks of pictures that EXIF turns, and masks in caches.
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/data/internal/picture_reader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

// Which pixels have more red than `kHalf`.
constexpr std::uint8_t kHalf = 127;
Image reds(const Image& image) {
  Image mask{.shape = image.shape};
  mask.shape.channels = 1;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    mask.pixels.push_back(image.pixels[i] > kHalf ? 1 : 0);
  }
  return mask;
}

class TurnedMasks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = std::make_unique<test::ScratchDir>();
    test::run_python("data_images.py", {shared_folder->path()});
  }
  static void TearDownTestSuite() {
    shared_folder.reset();
  }
  static std::string picture(int turn) {
    return shared_folder->path() + "/files/turned" + std::to_string(turn) +
           ".png";
  }
  // The picture and a mask of it, as it is turned or as the file has it.
  AnnotatedImage sample(int turn, bool is_turned) {
    const std::string image = picture(turn);
    const std::string mask = dir_ / "mask.png";
    stdfs::remove(mask);
    write_png(mask, reds(read_image(image, {.orient = is_turned})));
    const internal::PictureReader reader(
        {.images = {.size = 16}, .has_masks = true},
        1,
        [&](std::int64_t) {
          return internal::PictureFiles{.image = &image, .mask = &mask};
        });
    return reader.decoded({.image = &image, .mask = &mask});
  }

  static inline std::unique_ptr<test::ScratchDir> shared_folder;
  const test::ScratchDir dir_;
};

TEST_F(TurnedMasks, LieOnTheirPicture) {
  for (int turn = 1; turn <= 8; ++turn) {
    SCOPED_TRACE(turn);
    const AnnotatedImage turned = sample(turn, true);
    EXPECT_TRUE(turned.mask->pixels == reds(turned.image).pixels);
    EXPECT_EQ(turned.image.shape, read_image(picture(turn)).shape);
    if (turn < 2 || turn > 4) { // else its size does not tell
      const AnnotatedImage stored = sample(turn, false);
      EXPECT_TRUE(stored.mask->pixels == reds(stored.image).pixels);
    }
  }
}

// A folder of eight turned pictures with masks of the pictures in the files,
// where sizes tell, else of the turned ones.
class MasksInCaches : public TurnedMasks {
 protected:
  void SetUp() override {
    for (const char* part : {"train", "val"}) {
      const std::string folder = dir_ / part;
      stdfs::create_directories(folder + "/images");
      stdfs::create_directories(folder + "/masks");
      for (int turn = 1; turn <= 8; ++turn) {
        const std::string name = "/" + std::to_string(turn) + ".png";
        stdfs::copy(picture(turn), folder + "/images" + name);
        const bool tells = turn < 2 || turn > 4;
        write_png(
            folder + "/masks" + name,
            reds(read_image(picture(turn), {.orient = !tells})));
      }
    }
  }
  [[nodiscard]] std::pair<std::vector<float>, std::vector<std::int64_t>> read(
      ImageCache cache,
      const char* augment) const {
    constexpr std::int64_t kSide = 20;
    const DatasetParts data = open_dataset(
        "segmentation",
        dir_.path(),
        {.augment = named_augment(augment),
         .image_size = kSide,
         .cache = cache,
         .cache_folder = dir_ / "cache"});
    std::vector<std::int64_t> indices{0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<float> images(indices.size() * 3 * kSide * kSide);
    std::vector<std::int64_t> masks(indices.size() * kSide * kSide);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) { // filled, and kept
      data.train->read(indices, epoch, images, masks);
    }
    return {images, masks};
  }
};

TEST_F(MasksInCaches, HaveTheBitsOfNoCache) {
  for (const char* augment : {"light", "standard", "strong"}) {
    const auto expected = read(ImageCache::kNone, augment);
    EXPECT_EQ(read(ImageCache::kRam, augment), expected) << augment;
    EXPECT_EQ(read(ImageCache::kDisk, augment), expected) << augment;
    EXPECT_EQ(read(ImageCache::kDisk, augment), expected) << "again";
  }
}

} // namespace
} // namespace lockstep
