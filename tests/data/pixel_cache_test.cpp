// SPDX-License-Identifier: BSD-3-Clause
//
// Kept pixels: the same bits as without, files that changed or are damaged.
#include "lockstep/data/internal/pixel_cache.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;
using testing::HasSubstr;

constexpr std::int64_t kSize = 16;

class PixelCaches : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      put("train/a", i, 20 * i);
      put("train/b", i, 255 - 20 * i);
      put("val/a", i, 100);
      put("val/b", i, 50);
    }
  }
  void put(const std::string& folder, int number, int pixel) const {
    stdfs::create_directories(dir_ / ("data/" + folder));
    Image image{.shape = {.channels = 3, .height = 20, .width = 24}};
    for (std::int64_t i = 0; i < image.shape.numel(); ++i) {
      image.pixels.push_back(static_cast<std::uint8_t>(pixel + 7 * i));
    }
    write_png(path(folder, number), image);
  }
  [[nodiscard]] std::string path(const std::string& folder, int number) const {
    return dir_ / ("data/" + folder + "/" + std::to_string(number) + ".png");
  }
  [[nodiscard]] DatasetParts open(ImageCache cache, const Augment& augment = {})
      const {
    return open_dataset(
        "folder",
        dir_ / "data",
        {.transform = {.crop_padding = 2, .horizontal_flip = true},
         .augment = augment,
         .image_size = kSize,
         .cache = cache,
         .cache_folder = dir_ / "cache"});
  }
  static std::vector<float> pixels(
      const Dataset& data,
      std::int64_t epoch = 1) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      indices.push_back(i);
    }
    std::vector<float> images(indices.size() * 3 * kSize * kSize);
    std::vector<std::int64_t> targets(indices.size());
    data.read(indices, epoch, images, targets);
    return images;
  }
  [[nodiscard]] std::vector<stdfs::path> files() const {
    std::vector<stdfs::path> found;
    for (const auto& entry : stdfs::directory_iterator(dir_ / "cache")) {
      found.push_back(entry.path());
    }
    return found;
  }

  const test::ScratchDir dir_;
};

TEST_F(PixelCaches, GiveTheBitsOfNoCache) {
  const std::vector<float> expected = pixels(*open(ImageCache::kNone).train);
  for (const ImageCache cache : {ImageCache::kRam, ImageCache::kDisk}) {
    const DatasetParts data = open(cache);
    EXPECT_EQ(pixels(*data.train), expected) << "filled";
    EXPECT_EQ(pixels(*data.train), expected) << "kept";
  }
  EXPECT_EQ(files().size(), 2U) << "one for each part";
}

TEST_F(PixelCaches, InMemoryNeedTheFilesOnce) {
  const DatasetParts data = open(ImageCache::kRam);
  const std::vector<float> expected = pixels(*data.train);
  stdfs::remove_all(dir_ / "data/train");
  EXPECT_EQ(pixels(*data.train), expected);
}

TEST_F(PixelCaches, AreFilledByManyThreadsAtOnce) {
  const std::vector<float> expected = pixels(*open(ImageCache::kNone).train);
  for (const ImageCache cache : {ImageCache::kRam, ImageCache::kDisk}) {
    const DatasetParts data = open(cache);
    std::vector<std::vector<float>> read(4);
    {
      std::vector<std::jthread> threads;
      for (std::vector<float>& part : read) {
        threads.emplace_back([&] { part = pixels(*data.train); });
      }
    }
    for (const std::vector<float>& part : read) {
      EXPECT_EQ(part, expected);
    }
  }
}

// The file's contents, but not its size and time: a later run does not decode.
TEST_F(PixelCaches, OnDiskAreUsedByLaterRuns) {
  const std::vector<float> expected = pixels(*open(ImageCache::kDisk).train);
  const auto time = stdfs::last_write_time(path("train/a", 3));
  const auto size = stdfs::file_size(path("train/a", 3));
  std::ofstream(path("train/a", 3)) << std::string(size, 'x');
  stdfs::last_write_time(path("train/a", 3), time);
  EXPECT_EQ(pixels(*open(ImageCache::kDisk).train), expected);
}

TEST_F(PixelCaches, OnDiskAreBegunAnewWhenAFileChanges) {
  static_cast<void>(pixels(*open(ImageCache::kDisk).train));
  put("train/a", 3, 77);
  stdfs::last_write_time(
      path("train/a", 3),
      stdfs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(
      pixels(*open(ImageCache::kDisk).train),
      pixels(*open(ImageCache::kNone).train));
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PixelCaches, OnDiskAreMendedWhereTheyAreDamaged) {
  const std::vector<float> expected = pixels(*open(ImageCache::kDisk).train);
  for (const stdfs::path& file : files()) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-5, std::ios::end);
    stream << "junk";
  }
  EXPECT_EQ(pixels(*open(ImageCache::kDisk).train), expected);
  for (const stdfs::path& file : files()) {
    stdfs::resize_file(file, stdfs::file_size(file) - 1);
  }
  EXPECT_EQ(pixels(*open(ImageCache::kDisk).train), expected);
}

TEST_F(PixelCaches, KeepNothingOfAnImageThatCannotBeRead) {
  const DatasetParts data = open(ImageCache::kRam);
  const auto size = stdfs::file_size(path("train/a", 0));
  stdfs::resize_file(path("train/a", 0), size / 2);
  EXPECT_TRUE(test::error_if_any([&] { pixels(*data.train); }));
  put("train/a", 0, 0);
  EXPECT_EQ(pixels(*data.train), pixels(*open(ImageCache::kNone).train));
}

// What a crop begins with, what another step does, none that is random.
class AugmentedCaches : public PixelCaches,
                        public testing::WithParamInterface<const char*> {
 protected:
  static Augment augment() {
    const std::string name = GetParam();
    return name == "flip"
               ? Augment{{{.name = "horizontal_flip"}, {.name = "color_jitter"}}}
               : named_augment(name);
  }
  // Of both parts, in three epochs.
  static std::vector<float> all(const DatasetParts& data) {
    std::vector<float> values = pixels(*data.test);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const auto more = pixels(*data.train, epoch);
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }
};

TEST_P(AugmentedCaches, GiveTheBitsOfNoCache) {
  const std::vector<float> expected = all(open(ImageCache::kNone, augment()));
  for (const ImageCache cache : {ImageCache::kRam, ImageCache::kDisk}) {
    const DatasetParts data = open(cache, augment());
    EXPECT_EQ(all(data), expected) << "filled";
    EXPECT_EQ(all(data), expected) << "kept";
  }
  EXPECT_EQ(all(open(ImageCache::kDisk, augment())), expected) << "later";
}

TEST_P(AugmentedCaches, NeedTheFilesOnce) {
  const DatasetParts data = open(ImageCache::kRam, augment());
  const std::vector<float> expected = all(data);
  stdfs::remove_all(dir_ / "data");
  EXPECT_EQ(all(data), expected);
}

// One of another size than when the data were opened does not get its place.
TEST_P(AugmentedCaches, TellOfAFileThatChanges) {
  for (const ImageCache cache : {ImageCache::kRam, ImageCache::kDisk}) {
    put("train/a", 3, 77);
    const DatasetParts data = open(cache, augment());
    write_png(
        path("train/a", 3),
        {.shape = {.channels = 3, .height = 40, .width = 24},
         .pixels = std::vector<std::uint8_t>(3 * 40 * 24, 9)});
    auto error = test::error_if_any([&] { pixels(*data.train); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->detail, "E_IMAGE_CHANGED");
    EXPECT_EQ(error->path, path("train/a", 3));
    write_png( // as many pixels as before
        path("train/a", 3),
        {.shape = {.channels = 3, .height = 24, .width = 20},
         .pixels = std::vector<std::uint8_t>(3 * 24 * 20, 9)});
    error = test::error_if_any([&] { pixels(*data.train); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->detail, "E_IMAGE_CHANGED");
  }
}

TEST_P(AugmentedCaches, TellWhatIsWrongWithAFile) {
  std::ofstream(path("train/b", 2)) << "no image";
  for (const ImageCache cache : {ImageCache::kRam, ImageCache::kDisk}) {
    const DatasetParts data = open(cache, augment());
    const auto error = test::error_if_any([&] { pixels(*data.train); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->detail, "E_IMAGE_FORMAT");
    EXPECT_EQ(error->path, path("train/b", 2));
  }
}

// Whose head cannot be read when the data are opened, and later can.
TEST_P(AugmentedCaches, DoWithoutAPictureThatComesLate) {
  const std::vector<float> expected = all(open(ImageCache::kNone, augment()));
  const std::string late = path("train/a", 3);
  stdfs::rename(late, dir_ / "away");
  std::ofstream(late) << "";
  const DatasetParts data = open(ImageCache::kRam, augment());
  stdfs::rename(dir_ / "away", late);
  EXPECT_EQ(all(data), expected);
}

TEST_P(AugmentedCaches, SayWhatIsWrongWhereNothingIsSound) {
  for (const auto& entry : stdfs::recursive_directory_iterator(dir_ / "data")) {
    if (entry.is_regular_file()) {
      std::ofstream(entry.path()) << "x";
    }
  }
  const DatasetParts data = open(ImageCache::kRam, augment());
  const auto error = test::error_if_any([&] { pixels(*data.train); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->detail, "E_IMAGE_FORMAT");
}

INSTANTIATE_TEST_SUITE_P(
    Steps,
    AugmentedCaches,
    testing::Values("light", "standard", "strong", "flip"));

TEST_F(PixelCaches, LieInTheUsersFolder) {
  const test::ScopedVariable caches("XDG_CACHE_HOME", (dir_ / "xdg").c_str());
  EXPECT_EQ(internal::user_cache_folder(), dir_ / "xdg/lockstep/images");
  const test::ScopedVariable none("XDG_CACHE_HOME", "");
  const test::ScopedVariable home("HOME", (dir_ / "me").c_str());
  EXPECT_EQ(internal::user_cache_folder(), dir_ / "me/.cache/lockstep/images");
}

TEST_F(PixelCaches, SayThatThereIsNoRoom) {
  const auto error = test::error_if_any([&] {
    internal::make_pixel_cache(
        ImageCache::kRam,
        "",
        {.sizes = std::vector<std::uint64_t>(1'000, 1'000'000'000'000)},
        real_fs());
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->detail, "E_CACHE");
  EXPECT_THAT(error->hint, HasSubstr("--cache disk"));
}

} // namespace
} // namespace lockstep
