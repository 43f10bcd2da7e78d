// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of an Augment: what is refused, what they draw, and that masks, boxes
// and points stay with their pixels.
#include "lockstep/data/augment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/data/internal/augment_plan.h"
#include "lockstep/data/internal/image_geometry.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr AugmenterOptions kSized{.height = 8, .width = 8};

std::string refused(const Augment& augment, AugmenterOptions options = kSized) {
  try {
    static_cast<void>(Augmenter(augment, options));
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.error().detail, "E_DATA_OPTION");
    return error.what();
  }
  return "accepted";
}

Augment one(AugmentStep step) {
  return {{std::move(step)}};
}

// Column and row of each pixel, and a mask that repeats the column.
AnnotatedImage coordinates(std::int64_t height, std::int64_t width) {
  AnnotatedImage sample{
      .image = {.shape = {.channels = 3, .height = height, .width = width}}};
  sample.mask =
      Image{.shape = {.channels = 1, .height = height, .width = width}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      // 200: no place that a fill of zeros can have.
      for (const std::int64_t value : {x, y, std::int64_t{200}}) {
        sample.image.pixels.push_back(static_cast<std::uint8_t>(value));
      }
      sample.mask->pixels.push_back(static_cast<std::uint8_t>(x));
    }
  }
  return sample;
}

// Each pixel that the picture still has, with its mask's.
void expect_in_step(const AnnotatedImage& sample) {
  ASSERT_TRUE(sample.mask.has_value());
  const Image& mask = *sample.mask;
  ASSERT_EQ(mask.shape.height, sample.image.shape.height);
  ASSERT_EQ(mask.shape.width, sample.image.shape.width);
  for (std::size_t i = 0; i < mask.pixels.size(); ++i) {
    const bool is_filled = sample.image.pixels[3 * i + 2] != 200;
    ASSERT_EQ(
        mask.pixels[i],
        is_filled ? kIgnoredPixel : sample.image.pixels[3 * i]);
  }
}

TEST(Augment, RefusesWhatNoStepTakes) {
  EXPECT_THAT(
      refused(one({.name = "horizontal_flp"})),
      AllOf(HasSubstr("horizontal_flp"), HasSubstr("'horizontal_flip'?")));
  EXPECT_THAT(refused(one({.name = "zzzzzzzz"})), HasSubstr("trivial_augment"));
  EXPECT_THAT(
      refused(one({.name = "blur", .values = {{"sgma", {1}}}})),
      HasSubstr("did you mean 'sigma'?"));
  EXPECT_THAT(
      refused(one({.name = "invert", .values = {{"x", {1}}}})),
      HasSubstr("no numbers but 'p'"));
  EXPECT_THAT(
      refused(one({.name = "blur", .values = {{"kernel", {4}}}})),
      HasSubstr("odd"));
  EXPECT_THAT(
      refused(one({.name = "blur", .values = {{"sigma", {2, 1}}}})),
      HasSubstr("a smaller and a larger"));
  EXPECT_THAT(
      refused(one({.name = "blur", .values = {{"sigma", {1, 2, 3}}}})),
      HasSubstr("one number or two, got 3"));
  EXPECT_THAT(
      refused(one({.name = "posterize", .values = {{"bits", {2.5}}}})),
      HasSubstr("whole"));
  EXPECT_THAT(
      refused(one({.name = "posterize", .values = {{"bits", {1, 2}}}})),
      HasSubstr("takes one number, got 2"));
  EXPECT_THAT(
      refused(one({.name = "color_jitter", .values = {{"hue", {0.6}}}})),
      HasSubstr("-0.5 to 0.5, got 0.6"));
  EXPECT_THAT(
      refused(one({.name = "color_jitter", .values = {{"hue", {NAN}}}})),
      HasSubstr("got nan"));
  EXPECT_THAT(
      refused(one({.name = "invert", .probability = 1.5})),
      HasSubstr("p of invert must be 0 to 1, got 1.5"));
  EXPECT_THAT(
      refused({{{.name = "fit"}, {.name = "random_resized_crop"}}}),
      HasSubstr("second"));
  EXPECT_THAT(refused(one({.name = "fit"}), {}), HasSubstr("needs a size"));
  EXPECT_THAT(
      refused(one({.name = "fit", .probability = 0.5})),
      HasSubstr("always happens"));
  EXPECT_THAT(refused({}, {.height = 3}), HasSubstr("3 x 0"));
  EXPECT_THAT(
      refused({std::vector<AugmentStep>(65, {.name = "invert"})}),
      HasSubstr("at most 64 steps, got 65"));
  EXPECT_EQ(refused(one({.name = "invert"}), {}), "accepted");
}

TEST(Augment, NamedOnesAreAcceptedAndOtherNamesAreNot) {
  EXPECT_THAT(
      augment_names(),
      testing::ElementsAre("light", "standard", "strong"));
  for (const std::string& name : augment_names()) {
    EXPECT_EQ(refused(named_augment(name)), "accepted");
  }
  EXPECT_THROW(named_augment("heavy"), Exception);
}

TEST(Augment, IsAFunctionOfSeedEpochAndIndex) {
  const Augment augment = named_augment("strong");
  const auto pixels =
      [&](std::int64_t seed, std::int64_t epoch, std::int64_t index) {
        const Augmenter augmenter(
            augment,
            {.height = 16, .width = 16, .seed = seed});
        return augmenter.apply(coordinates(40, 50), epoch, index).image.pixels;
      };
  const auto base = pixels(1, 2, 3);
  EXPECT_EQ(base, pixels(1, 2, 3));
  for (const auto& other :
       {pixels(9, 2, 3),
        pixels(1, 9, 3),
        pixels(1, 2, 9),
        pixels(1LL << 40, 2, 3),
        pixels(1, 2, 1LL << 40)}) {
    EXPECT_NE(base, other);
  }
}

TEST(Augment, AStepDoesNotChangeWhatAnotherDraws) {
  // The crop is the same whether or not something follows it.
  const auto crop_of = [&](std::vector<AugmentStep> more) {
    Augment augment = one({.name = "random_resized_crop"});
    augment.steps.insert(augment.steps.end(), more.begin(), more.end());
    return Augmenter(augment, kSized)
        .apply(coordinates(40, 50), 0, 5)
        .mask->pixels;
  };
  EXPECT_EQ(
      crop_of({}),
      crop_of({{.name = "color_jitter", .values = {{"hue", {0.5}}}}}));
}

TEST(Augment, MasksStayWithTheirPixels) {
  const std::vector<Augment> all{
      one({.name = "crop", .values = {{"padding", {7}}}}),
      one({.name = "horizontal_flip", .probability = 1}),
      one({.name = "vertical_flip", .probability = 1}),
      one({.name = "rotation", .values = {{"degrees", {180}}}}),
      one(
          {.name = "affine",
           .values = {
               {"degrees", {60}},
               {"translate", {0.3, 0.2}},
               {"scale", {0.5, 2}},
               {"shear_x", {20}},
               {"shear_y", {20}}}})};
  for (const Augment& augment : all) {
    SCOPED_TRACE(augment.steps.front().name);
    const Augmenter augmenter(augment);
    bool has_moved = false;
    for (std::int64_t index = 0; index < 20; ++index) {
      const AnnotatedImage before = coordinates(31, 44);
      const AnnotatedImage after = augmenter.apply(before, 0, index);
      expect_in_step(after);
      has_moved = has_moved || after.image.pixels != before.image.pixels;
    }
    EXPECT_TRUE(has_moved);
  }
}

// Of trivial and rand augment only what moves pixels moves the mask.
TEST(Augment, ColoursLeaveMasksAlone) {
  for (const char* name :
       {"color_jitter",
        "grayscale",
        "blur",
        "posterize",
        "solarize",
        "autocontrast",
        "equalize",
        "invert",
        "sharpness",
        "erasing"}) {
    const AnnotatedImage before = coordinates(9, 8);
    const Augmenter augmenter(one({.name = name, .probability = 1}));
    const AnnotatedImage after = augmenter.apply(before, 0, 0);
    EXPECT_EQ(after.mask->pixels, before.mask->pixels) << name;
  }
}

TEST(Augment, ResizedCropsKeepMasksInPlace) {
  const Augmenter augmenter(
      one({.name = "random_resized_crop"}),
      {.height = 24, .width = 24});
  for (std::int64_t index = 0; index < 50; ++index) {
    AnnotatedImage sample = coordinates(60, 80);
    sample.points = {{.x = 40.5, .y = 30.5}};
    sample = augmenter.apply(std::move(sample), 0, index);
    ASSERT_EQ(sample.mask->shape.height, 24);
    // The picture's column is smoothed, the mask's is one of those beside.
    for (std::size_t i = 0; i < sample.mask->pixels.size(); ++i) {
      ASSERT_NEAR(sample.mask->pixels[i], sample.image.pixels[3 * i], 3);
    }
    const Point& point = sample.points.at(0);
    if (point.x >= 0 && point.x < 24 && point.y >= 0 && point.y < 24) {
      const auto at = static_cast<std::size_t>(
          std::floor(point.y) * 24 + std::floor(point.x));
      ASSERT_NEAR(sample.image.pixels[3 * at], 40, 3);
      ASSERT_NEAR(sample.image.pixels[3 * at + 1], 30, 3);
    }
  }
}

TEST(Augment, PointsStayWithTheirPixels) {
  const Augmenter augmenter(one(
      {.name = "affine",
       .values = {
           {"degrees", {90}},
           {"translate", {0.2, 0.2}},
           {"scale", {0.8, 1.5}},
           {"shear_x", {15}}}}));
  int inside = 0;
  for (std::int64_t index = 0; index < 100; ++index) {
    AnnotatedImage sample = coordinates(50, 70);
    sample.points = {{.x = 30.5, .y = 20.5}};
    sample = augmenter.apply(std::move(sample), 0, index);
    const Point& point = sample.points.at(0);
    if (point.x < 1 || point.x > 69 || point.y < 1 || point.y > 49) {
      continue;
    }
    ++inside;
    const auto at = static_cast<std::size_t>(
        std::floor(point.y) * 70 + std::floor(point.x));
    ASSERT_NEAR(sample.image.pixels[3 * at], 30, 1);
    ASSERT_NEAR(sample.image.pixels[3 * at + 1], 20, 1);
  }
  EXPECT_GT(inside, 50);
}

TEST(Augment, RefusesAMaskOfAnotherSize) {
  AnnotatedImage sample = coordinates(4, 5);
  sample.mask = coordinates(5, 4).mask;
  EXPECT_THROW(
      static_cast<void>(Augmenter({}).apply(std::move(sample), 0, 0)),
      Exception);
}

TEST(Augment, MinSideIsTwiceWhatTheSmallestCropNeeds) {
  const auto min_side = [](const Augment& augment) {
    return Augmenter(augment, {.height = 100, .width = 100}).min_side();
  };
  EXPECT_EQ(min_side({}), 200);
  EXPECT_EQ(min_side(one({.name = "invert"})), 200);
  EXPECT_EQ(min_side(one({.name = "fit"})), 200);
  // sqrt(0.25 * 1 / 4) is a quarter of the side.
  EXPECT_EQ(
      min_side(one(
          {.name = "random_resized_crop",
           .values = {{"scale", {0.25, 1}}, {"ratio", {0.25, 1}}}})),
      800);
  EXPECT_EQ(
      min_side({{{.name = "rotation"}, {.name = "random_resized_crop"}}}),
      0);
  EXPECT_EQ(Augmenter(one({.name = "invert"})).min_side(), 0);
}

} // namespace

namespace internal {
namespace {

constexpr std::int64_t kDraws = 10'000;

// Mean of what is drawn for samples 0 to 9999, at seed 7.
double mean_of(const std::function<double(Draws&)>& draw) {
  double sum = 0;
  for (std::int64_t index = 0; index < kDraws; ++index) {
    Draws draws(7, 0, index, 0);
    sum += draw(draws);
  }
  return sum / kDraws;
}

TEST(Draws, AreEvenAndInRange) {
  std::set<std::int64_t> seen;
  const double mean = mean_of([&](Draws& draws) {
    const std::int64_t number = draws.below(7);
    EXPECT_TRUE(number >= 0 && number < 7);
    seen.insert(number);
    return static_cast<double>(number);
  });
  EXPECT_EQ(seen.size(), 7U);
  EXPECT_NEAR(mean, 3, 0.06); // 3 standard deviations of the mean
  for (const int skipped : {0, 1, 3, 4, 9}) {
    EXPECT_NEAR(
        mean_of([&](Draws& draws) {
          for (int i = 0; i < skipped; ++i) {
            draws.word();
          }
          return draws.between(-1, 3);
        }),
        1,
        0.035);
  }
}

TEST(Draws, CropsHaveTheirScaleAndRatio) {
  const ImageShape shape{.height = 400, .width = 300};
  double ratio = 0;
  const double area = mean_of([&](Draws& draws) {
    const Region crop =
        random_crop(shape, {0.2, 0.4}, {3.0 / 4, 4.0 / 3}, draws);
    EXPECT_TRUE(
        crop.top >= 0 && crop.left >= 0 && crop.top + crop.height <= 400 &&
        crop.left + crop.width <= 300);
    ratio += std::log(
        static_cast<double>(crop.width) / static_cast<double>(crop.height));
    return static_cast<double>(crop.height * crop.width) / (400.0 * 300);
  });
  EXPECT_NEAR(area, 0.3, 0.002);
  EXPECT_NEAR(ratio / kDraws, 0, 0.006);
}

TEST(Draws, CropsThatDoNotFitBecomeTheLargestInTheMiddle) {
  Draws draws(0, 0, 0, 0);
  EXPECT_EQ(
      random_crop({.height = 10, .width = 400}, {1, 1}, {0.75, 1.25}, draws),
      (Region{.top = 0, .left = 194, .height = 10, .width = 12}));
  EXPECT_EQ(
      random_crop({.height = 400, .width = 9}, {1, 1}, {0.75, 1.25}, draws),
      (Region{.top = 194, .left = 0, .height = 12, .width = 9}));
}

TEST(Draws, StepsHappenAsOftenAsTheySay) {
  const Image dark{
      .shape = {.channels = 1, .height = 1, .width = 1},
      .pixels = {0}};
  for (const double p : {0.0, 0.25, 0.9, 1.0}) {
    const Augmenter augmenter({{{.name = "invert", .probability = p}}});
    double changed = 0;
    for (std::int64_t index = 0; index < kDraws; ++index) {
      changed +=
          augmenter.apply({.image = dark}, 3, index).image.pixels[0] == 255;
    }
    EXPECT_NEAR(changed / kDraws, p, p == 0 || p == 1 ? 0 : 0.013);
  }
}

} // namespace
} // namespace internal
} // namespace lockstep
