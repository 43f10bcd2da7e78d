// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/internal/gunzip.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using test::gzip;
using test::idx;
using test::IdxFolder;
using test::image_pixels;
using test::kTrainImages;
using test::kTrainLabels;
using test::label_values;
using test::packed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Error open_error(const std::string& directory) {
  const auto error = error_if_any([&] { fashion_mnist(directory); });
  EXPECT_TRUE(error);
  return error.value_or(Error{});
}

TEST(FashionMnist, ReadsTheInstalledSets) {
  const auto train = fashion_mnist();
  EXPECT_EQ(train->size(), 60000);
  EXPECT_THAT(train->sample_shape(), ElementsAre(1, 28, 28));
  EXPECT_EQ(train->num_classes(), 10);
  const auto test = fashion_mnist("", {.train = false});
  EXPECT_EQ(test->size(), 10000);
  // First labels of the published files.
  EXPECT_EQ(train->images().labels.data.get()[0], 9);
  EXPECT_EQ(test->images().labels.data.get()[1], 2);
}

TEST(FashionMnist, ReadsPixelsAndTargets) {
  const IdxFolder folder;
  const auto data = fashion_mnist(
      folder.path(),
      {.transform = {.mean = {0.0F}, .std = {1.0F}}});
  ASSERT_EQ(data->size(), IdxFolder::kCount);
  std::vector<float> images(2 * 784);
  std::vector<std::int64_t> targets(2);
  const std::vector<std::int64_t> indices{22, 3};
  data->read(indices, 0, images, targets);
  EXPECT_THAT(targets, ElementsAre(2, 3));
  EXPECT_EQ(images[0], 7 * 22 % 256 / 255.0F);
  EXPECT_EQ(images[784 + 5], (7 * 3 + 5) % 256 / 255.0F);
}

TEST(FashionMnist, FindsFilesInSubfolders) {
  for (const char* sub : {"raw", "FashionMNIST/raw", "FashionMNIST"}) {
    const test::ScratchDir root;
    const IdxFolder made;
    std::filesystem::create_directories(root / sub);
    std::filesystem::copy(made.path(), root / sub);
    EXPECT_EQ(fashion_mnist(root.path())->size(), IdxFolder::kCount) << sub;
  }
}

TEST(FashionMnist, PrefersPlainFiles) {
  const IdxFolder folder;
  folder.write(kTrainImages, idx({2, 28, 28}, image_pixels(2)));
  folder.write(kTrainLabels, idx({2}, label_values(2)));
  EXPECT_EQ(fashion_mnist(folder.path())->size(), 2);
}

TEST(FashionMnist, MissingFolderSaysWhatToDo) {
  const Error error = open_error("/nonexistent/data");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(
      to_string(error),
      "[data.open] folder of FashionMNIST does not exist; expected one with "
      "train-images-idx3-ubyte.gz and its siblings (/nonexistent/data). Hint: "
      "apt install dataset-fashion-mnist, or name the folder with --data-dir.");
}

TEST(FashionMnist, FileInsteadOfFolderIsToldSo) {
  const IdxFolder folder;
  const Error error = open_error(folder.path() + "/" + packed(kTrainImages));
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("is not a folder"));
}

TEST(FashionMnist, MissingFileNamesWhatWasLookedFor) {
  const IdxFolder folder;
  folder.remove(packed(kTrainLabels));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.path, folder.path());
  EXPECT_THAT(
      error.message,
      HasSubstr("looked for train-labels-idx1-ubyte and "
                "train-labels-idx1-ubyte.gz"));
  EXPECT_THAT(error.hint, HasSubstr("dataset-fashion-mnist"));
}

TEST(FashionMnist, MissingTestSetNamesItsFiles) {
  const IdxFolder folder;
  const auto error =
      error_if_any([&] { fashion_mnist(folder.path(), {.train = false}); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("t10k-images-idx3-ubyte.gz"));
}

TEST(FashionMnist, CutGzipIsCorrupt) {
  const IdxFolder folder;
  const std::string whole =
      gzip(idx({IdxFolder::kCount, 28, 28}, image_pixels(IdxFolder::kCount)));
  folder.write(packed(kTrainImages), whole.substr(0, whole.size() / 2));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.path, folder.path() + "/" + packed(kTrainImages));
  EXPECT_TRUE(error.offset.has_value());
  EXPECT_THAT(error.message, HasSubstr("cut or damaged"));
}

TEST(FashionMnist, ForeignFileIsCorrupt) {
  const IdxFolder folder;
  folder.write(packed(kTrainLabels), "\x89PNG\r\n\x1a\n and more bytes");
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("a PNG image"));
  EXPECT_EQ(error.path, folder.path() + "/" + packed(kTrainLabels));
}

TEST(FashionMnist, SwappedFilesAreTold) {
  const IdxFolder folder;
  folder.write(packed(kTrainImages), gzip(idx({3}, label_values(3))));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("1 dimensions, not 3"));
}

TEST(FashionMnist, CountMismatchIsCorrupt) {
  const IdxFolder folder;
  folder.write(packed(kTrainLabels), gzip(idx({22}, label_values(22))));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("expected 23 labels"));
  EXPECT_THAT(error.message, HasSubstr("got 22"));
  EXPECT_EQ(error.offset, 4);
}

TEST(FashionMnist, LabelOutOfRangeIsCorrupt) {
  const IdxFolder folder;
  std::string labels = label_values(IdxFolder::kCount);
  labels[5] = '\x0A';
  folder.write(packed(kTrainLabels), gzip(idx({IdxFolder::kCount}, labels)));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.offset, 8 + 5);
  EXPECT_THAT(
      error.message,
      HasSubstr("label of sample 5 is not a class; expected 0 to 9, got 10"));
}

TEST(FashionMnist, WrongImageSizeIsCorrupt) {
  const IdxFolder folder;
  folder.write(kTrainImages, idx({1, 32, 28}, std::string(32 * 28, 'x')));
  folder.write(kTrainLabels, idx({1}, label_values(1)));
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.offset, 8);
  EXPECT_THAT(error.message, HasSubstr("expected 28 x 28, got 32 x 28"));
}

TEST(FashionMnist, EmptySetIsCorrupt) {
  const IdxFolder folder;
  folder.write(kTrainImages, idx({0, 28, 28}, ""));
  folder.write(kTrainLabels, idx({0}, ""));
  EXPECT_EQ(open_error(folder.path()).code, ErrorCode::kCorrupt);
}

// A download that stopped. The labels at each KiB; the images, which take
// longer to decode, at each 64 KiB.
TEST(FashionMnist, InstalledFilesCutAnywhereAreCorrupt) {
  for (const auto& [name, step] :
       {std::pair{"train-labels-idx1-ubyte.gz", 1024},
        std::pair{"t10k-labels-idx1-ubyte.gz", 1024},
        std::pair{"t10k-images-idx3-ubyte.gz", 65536}}) {
    const std::string path = std::string(kFashionMnistFolder) + "/" + name;
    const std::string bytes = read_text(real_fs(), path).value();
    const auto step_bytes = static_cast<std::size_t>(step);
    for (std::size_t size = 0; size < bytes.size(); size += step_bytes) {
      const ByteSpan cut = as_byte_span(bytes).first(size);
      const auto error = error_if_any([&] { gunzip(cut, path); });
      ASSERT_TRUE(error) << name << " cut at " << size;
      EXPECT_EQ(error->code, ErrorCode::kCorrupt) << size;
      EXPECT_EQ(error->path, path);
    }
  }
}

TEST(Mnist, NeedsAFolder) {
  const auto error = error_if_any([] { mnist(""); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kNotFound);
  EXPECT_THAT(error->hint, HasSubstr("--data-dir"));
}

TEST(Mnist, ReadsTheSameFiles) {
  const IdxFolder folder;
  EXPECT_EQ(mnist(folder.path())->size(), IdxFolder::kCount);
}

TEST(Registry, OpensByName) {
  const IdxFolder folder;
  folder.write("t10k-images-idx3-ubyte", idx({2, 28, 28}, image_pixels(2)));
  folder.write("t10k-labels-idx1-ubyte", idx({2}, label_values(2)));
  for (const std::string name : {"fashion-mnist", "mnist"}) {
    const auto parts = open_dataset(name, folder.path());
    const auto& train = parts.train;
    const auto& test = parts.test;
    EXPECT_EQ(train->size(), IdxFolder::kCount) << name;
    EXPECT_EQ(test->size(), 2) << name;
  }
}

TEST(Registry, UnknownNameGetsTheNearestOne) {
  const auto error = error_if_any([] { open_dataset("fashion_mnist", ""); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      error->message,
      HasSubstr(
          "expected one of arrays, cifar10, cifar100, csv, fashion-mnist, "
          "folder, idx, mnist, segmentation"));
  EXPECT_EQ(error->hint, "did you mean fashion-mnist?");
}

} // namespace
} // namespace lockstep
