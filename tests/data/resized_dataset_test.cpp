// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resized_dataset.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <ATen/ops/arange.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/open_dataset.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using Floats = std::vector<float>;

constexpr std::array<std::array<std::int64_t, 2>, 8> kSizes{{
    {32, 32},
    {64, 64},
    {224, 224},
    {28, 28},
    {14, 14},
    {9, 31},
    {1, 1},
    {299, 5},
}};

Floats floats_of(const std::string& path) {
  const std::string bytes = read_text(real_fs(), path).value();
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// A program's own dataset: one image, the same for each index.
class OneImage : public Dataset {
 public:
  OneImage(std::vector<std::int64_t> shape, Floats pixels)
      : shape_(std::move(shape)), pixels_(std::move(pixels)) {}
  [[nodiscard]] std::int64_t size() const override {
    return 100;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return shape_;
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return 7;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t /*epoch*/,
      std::span<float> images,
      TargetRows targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      std::ranges::copy(pixels_, images.subspan(pixels_.size() * i).begin());
      targets.classes[i] = indices[i] % 7;
    }
  }

 private:
  std::vector<std::int64_t> shape_;
  Floats pixels_;
};

/// Masks whose pixels are their own numbers.
class OneMask : public OneImage {
 public:
  OneMask(std::int64_t height, std::int64_t width)
      : OneImage({1, height, width}, Floats(height * width)) {}
  [[nodiscard]] std::int64_t num_classes() const override {
    return 0; // not said
  }
  [[nodiscard]] TargetFormat target_format() const override {
    const auto shape = sample_shape();
    return {.kind = TargetKind::kClasses, .shape = {shape[1], shape[2]}};
  }
  void read(
      std::span<const std::int64_t> /*indices*/,
      std::int64_t /*epoch*/,
      std::span<float> /*images*/,
      TargetRows targets) const override {
    std::iota(targets.classes.begin(), targets.classes.end(), 0);
  }
};

Floats read_all(const Dataset& data, std::int64_t count) {
  std::vector<std::int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  const auto shape = data.sample_shape();
  Floats images(count * shape[0] * shape[1] * shape[2]);
  std::vector<std::int64_t> targets(count);
  data.read(indices, /*epoch=*/0, images, targets);
  return images;
}

TEST(ResizedDataset, HasTheBitsOfPythonsInterpolate) {
  const test::ScratchDir folder;
  test::run_python("data_resize.py", {folder.path()});
  const Floats python = floats_of(folder / "resize.bin");
  const auto fashion = fashion_mnist("", {.train = true});
  const auto noise = std::make_shared<OneImage>(
      std::vector<std::int64_t>{3, 17, 40},
      floats_of(folder / "random.bin"));
  auto expected = python.begin();
  const auto compare = [&](std::shared_ptr<const Dataset> data,
                           std::int64_t count) {
    for (const auto& [height, width] : kSizes) {
      const ResizedDataset resized(data, height, width);
      const Floats ours = read_all(resized, count);
      ASSERT_LE(std::ssize(ours), python.end() - expected);
      EXPECT_EQ(
          std::memcmp(ours.data(), &*expected, ours.size() * sizeof(float)),
          0)
          << height << " x " << width;
      expected += std::ssize(ours);
    }
  };
  compare(fashion, 2);
  compare(noise, 1);
  EXPECT_EQ(expected, python.end());
}

TEST(ResizedDataset, MasksAreThoseOfNearestUpsampling) {
  for (const auto& [height, width] : kSizes) {
    const auto data = std::make_shared<ResizedDataset>(
        std::make_shared<OneMask>(17, 40),
        height,
        width);
    Loader loader(
        std::static_pointer_cast<const Dataset>(data),
        {.batch_size = 2});
    loader.start_epoch(std::vector<std::int64_t>{0, 0}, 0);
    const at::Tensor masks = loader.next()->targets;
    const at::Tensor whole =
        at::arange(2 * 17 * 40, at::kDouble).view({2, 1, 17, 40});
    const at::Tensor expected =
        at::upsample_nearest2d(whole, {height, width}).squeeze(1);
    EXPECT_TRUE(masks.equal(expected.to(at::kLong)))
        << height << " x " << width;
  }
}

TEST(ResizedDataset, KeepsSamplesAndTargetsInAnyNumberOfThreads) {
  const auto data = std::make_shared<OneImage>(
      std::vector<std::int64_t>{1, 2, 2},
      Floats{0, 1, 2, 3});
  const auto resized = std::make_shared<ResizedDataset>(data, 5, 3);
  EXPECT_EQ(resized->size(), 100);
  EXPECT_EQ(resized->num_classes(), 7);
  for (const std::int64_t workers : {0, 3}) {
    Loader loader(resized, {.batch_size = 30, .workers = workers});
    std::vector<std::int64_t> order(100);
    std::iota(order.rbegin(), order.rend(), 0);
    loader.start_epoch(order, 0);
    std::int64_t seen = 0;
    while (const auto batch = loader.next()) {
      EXPECT_EQ(
          batch->images.sizes().slice(1),
          (std::vector<std::int64_t>{1, 5, 3}));
      EXPECT_TRUE(batch->images[0].equal(batch->images[batch->size() - 1]));
      EXPECT_EQ(batch->targets[0].item<std::int64_t>(), (99 - seen) % 7);
      seen += batch->size();
    }
    EXPECT_EQ(seen, 100);
  }
}

TEST(ResizedDataset, RefusesWhatIsNoImage) {
  const auto rows = std::make_shared<RandomDataset>(5, 10);
  try {
    const ResizedDataset resized(rows, 32, 32);
    ADD_FAILURE() << "rows were resized";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_IMAGE_SIZE");
    EXPECT_THAT(error.what(), testing::HasSubstr("got 1."));
  }
  const auto image =
      std::make_shared<OneImage>(std::vector<std::int64_t>{1, 1, 1}, Floats{0});
  EXPECT_THROW(ResizedDataset(image, 0, 4), Exception);
}

} // namespace
} // namespace lockstep
