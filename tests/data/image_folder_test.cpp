// SPDX-License-Identifier: BSD-3-Clause
//
// Folders of pictures: their order and pixels as torchvision's, their parts,
// and what is said of folders that are no data.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// The folder of data_folder.py, made once.
class ImageFolders : public testing::Test {
 protected:
  static constexpr std::int64_t kSize = 32;
  static void SetUpTestSuite() {
    shared_folder = std::make_unique<test::ScratchDir>();
    printed = test::python_lines(
        "data_folder.py",
        {shared_folder->path(), std::to_string(kSize)});
  }
  static void TearDownTestSuite() {
    shared_folder.reset();
  }
  static std::string animals() {
    return shared_folder->path() + "/animals";
  }
  // A copy to change.
  static std::string copy(const test::ScratchDir& to) {
    fs::copy(animals(), to.path() + "/a", fs::copy_options::recursive);
    return to.path() + "/a";
  }
  static inline std::unique_ptr<test::ScratchDir> shared_folder;
  static inline std::vector<std::string> printed;
};

TEST_F(ImageFolders, HaveTorchvisionsOrderAndPixels) {
  const auto data = image_folder(animals(), {.size = kSize});
  EXPECT_THAT(data->class_names(), ElementsAre("Dog", "cat", "\u732b"));
  EXPECT_THAT(data->sample_shape(), ElementsAre(3, kSize, kSize));
  std::vector<std::string> lines;
  for (const ImageSample& sample : data->samples()) {
    lines.push_back(
        std::to_string(sample.label) + " " +
        sample.path.substr(shared_folder->path().size() + 1));
  }
  EXPECT_EQ(lines, printed);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(data->size()));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<std::int64_t> targets(indices.size());
  std::vector<float> images(indices.size() * 3 * kSize * kSize);
  data->read(indices, 0, images, targets);
  const std::string python =
      read_text(real_fs(), shared_folder->path() + "/images.bin").value();
  ASSERT_EQ(python.size(), images.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(python.data(), images.data(), python.size()), 0);
  EXPECT_THAT(targets, ElementsAre(0, 1, 1, 1, 1, 2));
}

TEST_F(ImageFolders, AreReadByLoadersWithAnyNumberOfWorkers) {
  std::vector<at::Tensor> whole;
  for (const std::int64_t workers : {0, 3}) {
    Loader loader(
        image_folder(
            animals(),
            {.size = kSize,
             .transform = {.crop_padding = 3, .horizontal_flip = true}}),
        {.batch_size = 4, .workers = workers});
    loader.start_epoch({5, 4, 3, 2, 1, 0}, /*epoch=*/2);
    std::vector<at::Tensor> parts;
    while (const auto batch = loader.next()) {
      parts.push_back(batch->images);
    }
    whole.push_back(at::cat(parts));
  }
  EXPECT_TRUE(at::equal(whole[0], whole[1]));
}

TEST_F(ImageFolders, AreSplitClassByClass) {
  const test::ScratchDir scratch;
  const std::string folder = copy(scratch);
  for (int i = 0; i < 12; ++i) {
    for (const char* name : {"Dog", "\u732b"}) {
      fs::copy(
          folder + "/Dog/1.png",
          folder + "/" + name + "/x" + std::to_string(i) + ".png");
    }
  }
  const auto split = [&](std::int64_t seed) {
    return image_folders(
        folder,
        {.size = kSize},
        {.val_share = 0.25, .seed = seed});
  };
  const auto paths = [](const ImageFolder& data) {
    std::multiset<std::string> all;
    for (const ImageSample& sample : data.samples()) {
      all.insert(sample.path);
    }
    return all;
  };
  const auto [train, val] = split(1);
  std::map<std::int64_t, int> counts;
  for (const ImageSample& sample : val->samples()) {
    ++counts[sample.label];
  }
  EXPECT_EQ(counts, (std::map<std::int64_t, int>{{0, 3}, {1, 1}, {2, 3}}));
  auto all = paths(*train);
  all.merge(paths(*val));
  EXPECT_EQ(all, paths(*image_folder(folder, {.size = kSize})));
  EXPECT_EQ(paths(*split(1).second), paths(*val));
  EXPECT_NE(paths(*split(2).second), paths(*val));
}

TEST_F(ImageFolders, KeepTheirPartsWhenAFileIsAdded) {
  const test::ScratchDir scratch;
  const std::string folder = copy(scratch);
  for (const char* name : {"Dog", "cat", "\u732b"}) {
    for (int i = 0; i < 20; ++i) {
      fs::copy(
          animals() + "/Dog/1.png",
          folder + "/" + name + "/x" + std::to_string(i) + ".png");
    }
  }
  const auto val_of = [&] {
    std::set<std::string> paths;
    const auto parts = image_folders(folder, {.size = kSize});
    for (const ImageSample& sample : parts.second->samples()) {
      paths.insert(sample.path);
    }
    return paths;
  };
  const auto before = val_of();
  fs::copy(animals() + "/Dog/1.png", folder + "/Dog/added.png");
  std::vector<std::string> moved;
  std::ranges::set_symmetric_difference(
      before,
      val_of(),
      std::back_inserter(moved));
  EXPECT_LE(moved.size(), 2U); // the new file, and one other
}

TEST_F(ImageFolders, WithoutAValidationPartAreSplitWithinTrain) {
  const test::ScratchDir scratch;
  fs::create_directory(scratch.path() + "/Train");
  for (const char* name : {"a", "b"}) {
    for (const char* file : {"1.png", "2.png"}) {
      fs::create_directories(scratch.path() + "/Train/" + name);
      fs::copy(
          animals() + "/Dog/1.png",
          scratch.path() + "/Train/" + name + "/" + file);
    }
  }
  EXPECT_TRUE(holds_image_classes(scratch.path()));
  const auto [train, val] = image_folders(scratch.path(), {.size = kSize});
  EXPECT_THAT(train->class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(val->size(), 2);
}

TEST_F(ImageFolders, GoThroughAFolderOnceWhateverLinksLeadToIt) {
  const test::ScratchDir scratch;
  const std::string folder = copy(scratch);
  fs::create_directory_symlink("..", folder + "/cat/deep/up");
  fs::create_directory_symlink(".", folder + "/cat/self");
  const auto data = image_folder(folder, {.size = kSize});
  EXPECT_EQ(data->size(), 6);
}

TEST_F(ImageFolders, OfTheirOwnAreTakenAsParts) {
  for (const char* name : {"val", "valid", "validation", "dev", "test"}) {
    const test::ScratchDir scratch;
    fs::copy(animals(), scratch.path() + "/train", fs::copy_options::recursive);
    const std::string val = scratch.path() + "/" + name;
    fs::copy(animals(), val, fs::copy_options::recursive);
    fs::remove(val + "/cat/a.PNG");
    const ImageFolderOptions options{
        .size = kSize,
        .transform = {.horizontal_flip = true}};
    const auto parts = image_folders(scratch.path(), options);
    EXPECT_EQ(parts.first->size(), 6);
    EXPECT_EQ(parts.second->size(), 5);
    fs::remove_all(val + "/Dog");
    const Error error =
        test::error_of([&] { image_folders(scratch.path(), options); });
    EXPECT_EQ(error.detail, "E_CLASSES");
    EXPECT_THAT(error.message, HasSubstr("Dog, cat, \u732b and cat, \u732b"));
  }
}

// Resized whole it would have 512 x 102,400,000 pixels.
TEST_F(ImageFolders, ResizeOnlyWhatIsKept) {
  const test::ScratchDir scratch;
  fs::create_directory(scratch.path() + "/line");
  test::run_python(
      "data_line.py",
      {scratch.path() + "/line/a.png", "200000", "1"});
  const auto data = image_folder(scratch.path(), {.size = 512});
  std::vector<float> images(3UL * 512 * 512);
  std::vector<std::int64_t> targets(1);
  data->read(std::vector<std::int64_t>{0}, 0, images, targets);
  EXPECT_EQ(images.front(), (1.0F - 0.485F) / 0.229F);
}

TEST_F(ImageFolders, SayWhichFileIsDamaged) {
  const test::ScratchDir scratch;
  const std::string folder = copy(scratch);
  fs::resize_file(folder + "/cat/b.png", 100);
  const auto data = image_folder(folder, {.size = kSize});
  std::vector<float> images(3 * kSize * kSize);
  std::vector<std::int64_t> targets(1);
  const Error error = test::error_of(
      [&] { data->read(std::vector<std::int64_t>{2}, 0, images, targets); });
  EXPECT_EQ(error.detail, "E_IMAGE");
  EXPECT_EQ(error.path, folder + "/cat/b.png");
  const auto rest =
      image_folder(folder, {.size = kSize, .skip_bad_images = true});
  EXPECT_EQ(rest->size(), 5);
  ASSERT_EQ(rest->bad_images().size(), 1U);
  EXPECT_EQ(rest->bad_images()[0].path, folder + "/cat/b.png");
  for (const char* name : {"Dog", "\u732b"}) {
    fs::copy(folder + "/cat/a.PNG", folder + "/" + name + "/2.png");
  }
  const auto parts =
      image_folders(folder, {.size = kSize, .skip_bad_images = true});
  EXPECT_EQ(parts.first->bad_images().size(), 1U);
  EXPECT_EQ(parts.second->bad_images().size(), 1U);
}

TEST_F(ImageFolders, TellWhichImagesAreLeftOut) {
  const test::ScratchDir scratch;
  const std::string folder = copy(scratch);
  const auto warnings_of = [&] {
    const test::Warnings warnings;
    image_folder(folder, {.size = kSize});
    return warnings.text;
  };
  EXPECT_EQ(warnings_of(), "") << "notes.txt is no image";
  std::ofstream(folder + "/cat/deep/x.GIF") << "GIF89a";
  EXPECT_THAT(
      warnings_of(),
      testing::AllOf(
          HasSubstr("1 image of other formats"),
          HasSubstr("deep/x.GIF")));
  std::ofstream(folder + "/Dog/y.tiff") << "II*";
  EXPECT_THAT(warnings_of(), HasSubstr("2 images of other formats"));
}

TEST_F(ImageFolders, ThatAreNoDataAreRefused) {
  const test::ScratchDir scratch;
  const auto open = [&](const ImageFolderOptions& options = {}) {
    return test::error_of([&] { image_folder(scratch.path(), options); });
  };
  EXPECT_THAT(open().message, HasSubstr("no classes"));
  fs::create_directory(scratch.path() + "/cat");
  const Error empty = open();
  EXPECT_EQ(empty.detail, "E_NO_DATA");
  EXPECT_EQ(empty.path, scratch.path() + "/cat");
  EXPECT_EQ(
      test::error_of([] { image_folder("/nowhere/at/all"); }).code,
      ErrorCode::kNotFound);
  fs::copy(animals() + "/Dog/1.png", scratch.path() + "/cat/1.png");
  EXPECT_THAT(open({.size = 0}).message, HasSubstr("size of images"));
  EXPECT_THAT(
      open({.transform = {.mean = {0.5F}}}).message,
      HasSubstr("one mean"));
  EXPECT_THAT(
      test::error_of([&] { image_folders(scratch.path()); }).message,
      HasSubstr("one image cannot be split"));
  EXPECT_THAT(
      test::error_of([&] {
        image_folders(scratch.path(), {}, {.val_share = 1});
      }).message,
      HasSubstr("between 0 and 1"));
}

} // namespace
} // namespace lockstep
