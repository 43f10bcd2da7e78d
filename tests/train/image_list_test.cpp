// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/image_list.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/support/scratch_dir.h"
#include "tests/user/support.h"

namespace lockstep::train {
namespace {

namespace stdfs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageListTest : public ::testing::Test {
 protected:
  ImageListTest() {
    for (const char* name : {"a.png", "b/c.JPG", "b/d.txt", "z.webp"}) {
      put(name);
    }
  }
  void put(const std::string& name) const {
    stdfs::create_directories(stdfs::path(photos_ + "/" + name).parent_path());
    std::ofstream(photos_ + "/" + name) << "bytes";
  }
  static std::vector<std::string> names(const std::string& word) {
    std::vector<std::string> names;
    for (const ListedImage& image : list_images({{word}}, {})) {
      EXPECT_TRUE(stdfs::exists(image.path)) << image.path;
      names.push_back(image.name);
    }
    return names;
  }
  const test::ScratchDir dir_;
  const std::string photos_ = dir_ / "photos";
};

TEST_F(ImageListTest, NamesArePathsBelowTheFolder) {
  EXPECT_THAT(names(photos_), ElementsAre("a.png", "b/c.JPG", "z.webp"));
  EXPECT_THAT(names(photos_ + "/"), ElementsAre("a.png", "b/c.JPG", "z.webp"));
  EXPECT_THAT(names(photos_ + "/b"), ElementsAre("c.JPG"));
  EXPECT_THAT(names(photos_ + "/a.png"), ElementsAre("a.png"));
}

TEST_F(ImageListTest, FoldersAreGoneThroughOnceWhateverLinksLeadToThem) {
  stdfs::create_directory_symlink("..", photos_ + "/b/up");
  stdfs::create_directory_symlink(".", photos_ + "/self");
  stdfs::create_directory_symlink("b", photos_ + "/latest");
  stdfs::create_directory_symlink("b", photos_ + "/0");
  EXPECT_THAT(names(photos_), ElementsAre("a.png", "b/c.JPG", "z.webp"));
}

TEST_F(ImageListTest, AFolderOfOtherFormatsIsNotSilentlyEmpty) {
  stdfs::create_directories(photos_ + "/scans");
  put("scans/a.tif");
  const test::Warnings warnings;
  EXPECT_THROW(names(photos_ + "/scans"), Exception);
  EXPECT_THAT(warnings.text, HasSubstr("1 image of other formats"));
}

TEST_F(ImageListTest, ImagesOfOtherFormatsAreTold) {
  const auto warned = [&] {
    const test::Warnings warnings;
    EXPECT_THAT(names(photos_), ElementsAre("a.png", "b/c.JPG", "z.webp"));
    return warnings.text;
  };
  EXPECT_EQ(warned(), "");
  put("b/e.gif");
  EXPECT_THAT(warned(), HasSubstr("1 image of other formats"));
  for (const char* name : {"f.BMP", "g.tif", "h.tiff", "b/i.pgm", "j.ppm"}) {
    put(name);
  }
  EXPECT_THAT(warned(), HasSubstr("6 images of other formats"));
}

} // namespace
} // namespace lockstep::train
