// SPDX-License-Identifier: BSD-3-Clause
//
// What tells the samples of one data set from those of another: each kind, and
// each way in which samples can be others.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/data/augment.h"
#include "lockstep/data/internal/array_dataset.h"
#include "lockstep/data/internal/resized_dataset.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/open_dataset.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

namespace stdfs = std::filesystem;

class Digest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    const stdfs::path path = dir_ / name;
    stdfs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // A picture whose file has another size for another width.
  void put_grey(const std::string& name, std::int64_t width) const {
    stdfs::create_directories(stdfs::path(dir_ / name).parent_path());
    const ImageShape shape{.channels = 1, .height = 8, .width = width};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<std::uint8_t>(i * i * 31 % 200);
    }
    write_png(dir_ / name, {.shape = shape, .pixels = pixels});
  }
  void exchange(const std::string& a, const std::string& b) const {
    stdfs::rename(dir_ / a, dir_ / "kept");
    stdfs::rename(dir_ / b, dir_ / a);
    stdfs::rename(dir_ / "kept", dir_ / b);
  }
  // Of both parts.
  [[nodiscard]] std::vector<std::uint64_t> of(const std::string& kind) const {
    const DatasetParts parts =
        open_dataset(kind, dir_.path(), {.image_size = 8});
    return {parts.train->digest(), parts.test->digest()};
  }

  const test::ScratchDir dir_;
};

TEST_F(Digest, OfFoldersChangesWithFilesAndClasses) {
  for (const std::string part : {"train/", "val/"}) {
    put_grey(part + "cat/1.png", 8);
    put_grey(part + "cat/2.png", 9);
    put_grey(part + "dog/1.png", 10);
  }
  const auto first = of("folder");
  EXPECT_NE(first[0], 0U);
  EXPECT_EQ(of("folder"), first);
  exchange("train/cat/1.png", "train/dog/1.png");
  const auto exchanged = of("folder");
  EXPECT_NE(exchanged[0], first[0]);
  EXPECT_EQ(exchanged[1], first[1]);
  exchange("train/cat/1.png", "train/dog/1.png");
  EXPECT_EQ(of("folder"), first);
  stdfs::rename(dir_ / "val/cat/2.png", dir_ / "val/dog/2.png");
  EXPECT_NE(of("folder")[1], first[1]);
}

TEST_F(Digest, OfAFolderElsewhereIsTheSame) {
  put_grey("a/cat/1.png", 8);
  put_grey("a/cat/2.png", 9);
  put_grey("a/dog/1.png", 10);
  put_grey("a/dog/2.png", 11);
  const auto digest = [&](const std::string& name) {
    return open_dataset("folder", dir_ / name).train->digest();
  };
  const std::uint64_t first = digest("a");
  stdfs::rename(dir_ / "a", dir_ / "b");
  EXPECT_EQ(digest("b"), first);
}

TEST_F(Digest, OfMasksChangesWithThem) {
  for (const std::string name : {"1", "2", "3"}) {
    put_grey("images/" + name + ".png", 8);
    put_grey("masks/" + name + ".png", 8);
  }
  const auto read = [&] {
    put("classes.txt", "a\nb\nc\n");
    return of("segmentation");
  };
  const auto first = read();
  for (const std::string name : {"1", "2", "3"}) {
    put_grey("masks/" + name + ".png", 9);
  }
  EXPECT_NE(read()[0], first[0]);
}

TEST_F(Digest, OfTablesChangesWithACell) {
  put("train.csv", "x,y\n1,0\n2,1\n3,0\n");
  put("val.csv", "x,y\n1,0\n2,1\n");
  const auto first = of("csv");
  put("train.csv", "x,y\n1,0\n2,1\n4,0\n");
  const auto other_input = of("csv");
  EXPECT_NE(other_input[0], first[0]);
  EXPECT_EQ(other_input[1], first[1]);
  put("train.csv", "x,y\n1,0\n2,1\n3,1\n");
  EXPECT_NE(of("csv")[0], first[0]) << "another target";
  put_grey("1.png", 8);
  put_grey("2.png", 9);
  for (const std::string part : {"train.csv", "val.csv"}) {
    put(part, "path,y\n1.png,0.5\n2.png,1\n");
  }
  const auto images = of("csv");
  put("train.csv", "path,y\n1.png,0.5\n2.png,1.5\n");
  EXPECT_NE(of("csv")[0], images[0]);
}

TEST_F(Digest, OfArraysReadsThem) {
  const at::Tensor x = torch::arange(24, torch::kFloat).reshape({4, 6});
  const auto digest = [](const at::Tensor& inputs, std::int64_t label) {
    return internal::ArrayDataset(
               {.inputs = internal::elements_of(inputs),
                .target = {.kind = TargetKind::kClasses},
                .classes = {0, 1, 2, label},
                .num_classes = 4},
               {})
        .digest();
  };
  at::Tensor other = x.clone();
  other[3][5] += 1;
  EXPECT_EQ(digest(x, 3), digest(x.clone(), 3));
  EXPECT_NE(digest(x, 3), digest(other, 3));
  EXPECT_NE(digest(x, 3), digest(x, 2));
}

TEST_F(Digest, OfLargeArraysReadsRowsFromAllOver) {
  // 128 MiB: of each run of 4 rows the first 2.
  const at::Tensor x = torch::zeros({1024, 32, 1024}, torch::kFloat);
  const internal::ArrayElements elements = internal::elements_of(x);
  const std::uint64_t first = internal::digest_of(elements, 1);
  x[1021][0][0] = 1;
  EXPECT_NE(internal::digest_of(elements, 1), first);
}

TEST_F(Digest, OfPartsAndWrappersIsOfTheWhole) {
  const auto bytes = [](std::string text) {
    const auto kept = std::make_shared<std::string>(std::move(text));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes
    const auto* first = reinterpret_cast<const std::uint8_t*>(kept->data());
    return SharedBytes{{kept, first}, kept->size()};
  };
  const auto images = [&](char pixel, char label) {
    return std::make_shared<ImageDataset>(
        LabelledImages{
            .shape = {.channels = 1, .height = 2, .width = 2},
            .pixels = bytes(std::string(7, '\1') + pixel),
            .labels = bytes(std::string("\0", 1) + label),
            .num_classes = 3},
        TransformOptions{.mean = {0}, .std = {1}});
  };
  const auto data = images('\1', '\1');
  EXPECT_NE(data->digest(), images('\2', '\1')->digest());
  EXPECT_NE(data->digest(), images('\1', '\2')->digest());
  EXPECT_EQ(ResizedDataset(data, 4, 4).digest(), data->digest());
  const auto part = [](const auto& whole, std::vector<std::int64_t> indices) {
    return subset(whole, std::move(indices))->digest();
  };
  EXPECT_EQ(part(data, {1, 0}), part(data, {1, 0}));
  EXPECT_NE(part(data, {1, 0}), part(data, {0, 1}));
  const auto own = as_dataset(make_dataset(torch::rand({4, 2})));
  EXPECT_EQ(own->digest(), 0U) << "a program's own";
  EXPECT_EQ(part(own, {0, 1}), 0U);
  EXPECT_NE(RandomDataset(2, 3).digest(), RandomDataset(2, 3).digest());
}

} // namespace
} // namespace lockstep
