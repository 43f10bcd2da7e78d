// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/images.h"
#include "lockstep/data/internal/philox.h"
#include "lockstep/data/internal/turn_mask.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using ::testing::ElementsAre;

// Published test vectors of the generator (Random123, kat_vectors).
TEST(Philox, EqualsThePublishedVectors) {
  EXPECT_THAT(
      philox({0, 0, 0, 0}, {0, 0}),
      ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(
      philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      philox(
          {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
          {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// Every pixel value, at every place in a vector, for odd means and stds.
TEST(Normaliser, VectorsAndTableGiveTheSameBits) {
  constexpr int kPixels = 256 * 9 + 5;
  std::vector<std::uint8_t> all;
  all.reserve(kPixels);
  for (int i = 0; i < kPixels; ++i) {
    all.push_back(static_cast<std::uint8_t>(i * 85 + i / 256));
  }
  for (const float mean : {0.0F, 0.2860F, -3.5F, 1e-30F, 0.1307F}) {
    for (const float std : {1.0F, 0.3530F, -0.1F, 1e-20F, 3e7F, 0.3081F}) {
      const Normaliser normaliser(mean, std);
      std::vector<float> fast(all.size());
      std::vector<float> table(all.size());
      normaliser.apply(all, fast.data());
      normaliser.apply_table(all, table.data());
      EXPECT_EQ(std::memcmp(fast.data(), table.data(), 4 * all.size()), 0)
          << mean << " " << std;
    }
  }
}

#if defined(__x86_64__)
// Nearly every mean and std rounds as it should; these are in daily use.
TEST(Normaliser, UsualDataIsDoneInVectors) {
  const bool can = widest_vectors() >= VectorWidth::kAvx2;
  for (const auto& [mean, std] :
       {std::pair(0.2860F, 0.3530F),
        std::pair(0.1307F, 0.3081F),
        std::pair(0.5F, 0.5F),
        std::pair(0.485F, 0.229F)}) {
    EXPECT_EQ(Normaliser(mean, std).is_vectorised(), can) << mean;
  }
  EXPECT_FALSE(Normaliser(0.0F, 0.0F).is_vectorised());
}
#endif

constexpr ImageShape kShape{.channels = 2, .height = 5, .width = 19};

TransformOptions identity() {
  return {.mean = {0.0F, 0.0F}, .std = {1.0F, 1.0F}};
}

std::vector<std::uint8_t> pixels(std::int64_t images) {
  std::vector<std::uint8_t> values;
  for (std::int64_t i = 0; i < images * kShape.numel(); ++i) {
    values.push_back(static_cast<std::uint8_t>(1 + i * 37 % 255));
  }
  return values;
}

// The definition, pixel by pixel: pad, crop, mirror, normalise.
float expected(
    const std::vector<std::uint8_t>& table,
    const TransformOptions& options,
    std::int64_t epoch,
    std::int64_t index,
    std::int64_t element) {
  const Augmentation choice = augmentation(options, epoch, index);
  const std::int64_t plane = kShape.height * kShape.width;
  const std::int64_t channel = element / plane;
  const std::int64_t y = element % plane / kShape.width;
  std::int64_t x = element % kShape.width;
  if (choice.flip) {
    x = kShape.width - 1 - x;
  }
  const std::int64_t from_y = y + choice.top - options.crop_padding;
  const std::int64_t from_x = x + choice.left - options.crop_padding;
  int pixel = 0;
  if (from_y >= 0 && from_y < kShape.height && from_x >= 0 &&
      from_x < kShape.width) {
    pixel = table.at(static_cast<std::size_t>(
        index * kShape.numel() + channel * plane + from_y * kShape.width +
        from_x));
  }
  const auto c = static_cast<std::size_t>(channel);
  return (static_cast<float>(pixel) / 255.0F - options.mean.at(c)) /
         options.std.at(c);
}

void expect_as_defined(const TransformOptions& options) {
  constexpr std::int64_t kImages = 40;
  const auto table = pixels(kImages);
  const Transform transform(kShape, options);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < kImages; ++i) {
    indices.push_back(i * 7 % kImages);
  }
  std::vector<float> out(table.size());
  transform.gather(table, indices, 3, out);
  for (std::int64_t i = 0; i < kImages; ++i) {
    for (std::int64_t e = 0; e < kShape.numel(); ++e) {
      ASSERT_EQ(
          out.at(static_cast<std::size_t>(i * kShape.numel() + e)),
          expected(
              table,
              options,
              3,
              indices.at(static_cast<std::size_t>(i)),
              e))
          << "image " << i << ", element " << e;
    }
  }
}

TEST(Transform, NormalisesEachChannel) {
  expect_as_defined({.mean = {0.25F, 0.5F}, .std = {0.3F, 0.7F}});
}

TEST(Transform, CropsFromThePaddedImage) {
  for (const std::int64_t padding : {1, 2, 4, 30}) {
    TransformOptions options = identity();
    options.crop_padding = padding;
    expect_as_defined(options);
  }
}

TEST(Transform, MirrorsAfterTheCrop) {
  TransformOptions options{.mean = {0.1F, 0.2F}, .std = {0.5F, 0.6F}};
  options.horizontal_flip = true;
  expect_as_defined(options);
  options.crop_padding = 4;
  options.seed = 5;
  expect_as_defined(options);
}

// What masks say of padding is no class.
TEST(Transform, PaddingOfMasksIsNotCounted) {
  TransformOptions options;
  options.crop_padding = 8;
  const TargetFormat format{.kind = TargetKind::kClasses, .shape = {8, 8}};
  for (const auto& [classes, uncounted] :
       std::map<std::int64_t, std::int64_t>{{255, 255}, {256, -100}}) {
    std::vector<std::int64_t> masks(8 * 8 * 8, 7);
    const std::vector<std::int64_t> indices{0, 1, 2, 3, 4, 5, 6, 7};
    internal::turn_masks(options, indices, 0, format, classes, masks);
    const std::set<std::int64_t> found(masks.begin(), masks.end());
    EXPECT_THAT(found, ::testing::UnorderedElementsAre(7, uncounted));
  }
}

TEST(Augmentation, DependsOnSeedEpochAndIndexOnly) {
  const TransformOptions options{
      .crop_padding = 4,
      .horizontal_flip = true,
      .seed = 7};
  EXPECT_EQ(augmentation(options, 1, 2), augmentation(options, 1, 2));
  TransformOptions other = options;
  other.seed = 8;
  int by_seed = 0;
  int by_epoch = 0;
  int by_index = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Augmentation base = augmentation(options, 1, i);
    by_seed += base == augmentation(other, 1, i) ? 1 : 0;
    by_epoch += base == augmentation(options, 2, i) ? 1 : 0;
    by_index += base == augmentation(options, 1, i + 1) ? 1 : 0;
  }
  // 162 choices: a few of 100 are equal by chance.
  EXPECT_LT(by_seed, 6);
  EXPECT_LT(by_epoch, 6);
  EXPECT_LT(by_index, 6);
}

TEST(Augmentation, ChoosesEvenly) {
  const TransformOptions options{.crop_padding = 4, .horizontal_flip = true};
  constexpr std::int64_t kDraws = 81'000;
  std::vector<int> places(81);
  int flips = 0;
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const Augmentation choice = augmentation(options, 0, i);
    ++places.at(static_cast<std::size_t>(choice.top * 9 + choice.left));
    flips += choice.flip ? 1 : 0;
  }
  // 1000 expected each; six standard deviations.
  for (const int count : places) {
    EXPECT_NEAR(count, 1000, 6 * std::sqrt(1000.0));
  }
  EXPECT_NEAR(flips, kDraws / 2.0, 6 * std::sqrt(kDraws / 4.0));
}

TEST(Augmentation, OffMeansNotMoved) {
  const Augmentation none = augmentation({}, 3, 5);
  EXPECT_EQ(none, Augmentation{});
}

TEST(Transform, RejectsWrongOptions) {
  const auto code = [](TransformOptions options) {
    const auto error = error_if_any([&] { Transform(kShape, options); });
    return error ? error->code : ErrorCode::kInternal;
  };
  EXPECT_EQ(
      code({.mean = {0.0F}, .std = {1.0F, 1.0F}}),
      ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      code({.mean = {0.0F, 0.0F}, .std = {1.0F, 0.0F}}),
      ErrorCode::kInvalidArgument);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(
      code({.mean = {0.0F, nan}, .std = {1.0F, 1.0F}}),
      ErrorCode::kInvalidArgument);
  TransformOptions padding = identity();
  padding.crop_padding = -1;
  EXPECT_EQ(code(padding), ErrorCode::kInvalidArgument);
}

} // namespace
} // namespace lockstep
