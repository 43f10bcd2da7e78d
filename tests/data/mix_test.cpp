// SPDX-License-Identifier: BSD-3-Clause
//
// Samples of a batch mixed: the definition, and what is drawn.
#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/internal/mix_draws.h"

namespace lockstep {
namespace {

constexpr std::int64_t kClasses = 4;

Batch batch_of(std::int64_t size) {
  return {
      .images = at::arange(size, at::kFloat)
                    .reshape({size, 1, 1, 1})
                    .expand({size, 2, 8, 6})
                    .contiguous(),
      .targets = at::arange(size, at::kLong).remainder(kClasses)};
}

MixOptions options_for(std::int64_t batch) {
  return {.num_classes = kClasses, .seed = 3, .epoch = 1, .batch = batch};
}

TEST(Mix, MixUpBlendsWithTheSampleBefore) {
  const Batch batch = batch_of(5);
  const Batch mixed = mix_up(batch, options_for(0));
  ASSERT_EQ(mixed.targets.sizes(), (at::IntArrayRef{5, kClasses}));
  // Sample 1 is 1 * lambda + 0 * (1 - lambda).
  const auto lambda = mixed.images[1][0][0][0].item<float>();
  EXPECT_GT(lambda, 0);
  EXPECT_LT(lambda, 1);
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::int64_t before = (i + 4) % 5;
    const float expected = lambda * static_cast<float>(i) +
                           (1 - lambda) * static_cast<float>(before);
    EXPECT_NEAR(mixed.images[i].min().item<float>(), expected, 1e-5);
    EXPECT_NEAR(mixed.images[i].max().item<float>(), expected, 1e-5);
    const at::Tensor row = mixed.targets[i];
    EXPECT_NEAR(row.sum().item<float>(), 1, 1e-6);
    if (i % kClasses != before % kClasses) {
      EXPECT_NEAR(row[i % kClasses].item<float>(), lambda, 1e-6);
      EXPECT_NEAR(row[before % kClasses].item<float>(), 1 - lambda, 1e-6);
    }
  }
  EXPECT_TRUE(at::equal(batch.images, batch_of(5).images));
}

TEST(Mix, CutMixPastesABoxAndCountsItsPixels) {
  for (std::int64_t number = 0; number < 50; ++number) {
    const Batch batch = batch_of(4);
    const Batch mixed = cut_mix(batch, options_for(number));
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t before = (i + 3) % 4;
      const at::Tensor image = mixed.images[i];
      const auto pasted =
          image.eq(static_cast<double>(before)).sum().item<double>();
      const auto own = image.eq(static_cast<double>(i)).sum().item<double>();
      ASSERT_EQ(pasted + own, 2 * 8 * 6);
      ASSERT_NEAR(
          mixed.targets[i][before].item<double>(),
          pasted / (2 * 8 * 6),
          1e-6);
    }
  }
}

TEST(Mix, IsAFunctionOfSeedEpochAndBatch) {
  const Batch batch{
      .images = at::rand({3, 1, 4, 4}),
      .targets = batch_of(3).targets};
  const auto images = [&](const MixOptions& options) {
    return mix_up(batch, options).images;
  };
  const MixOptions base = options_for(2);
  EXPECT_TRUE(at::equal(images(base), images(base)));
  MixOptions other = base;
  other.seed = 4;
  EXPECT_FALSE(at::equal(images(base), images(other)));
  other = base;
  other.epoch = 2;
  EXPECT_FALSE(at::equal(images(base), images(other)));
  EXPECT_FALSE(at::equal(images(base), images(options_for(3))));
}

TEST(Mix, TakesSharesOfClassesToo) {
  Batch batch = batch_of(3);
  batch.targets = at::rand({3, kClasses}, at::kDouble);
  const Batch mixed = mix_up(batch, options_for(0));
  EXPECT_EQ(mixed.targets.scalar_type(), at::kDouble);
  EXPECT_NEAR(
      mixed.targets.sum().item<double>(),
      batch.targets.sum().item<double>(),
      1e-9);
}

TEST(Mix, RefusesWhatCannotBeMixed) {
  const auto refused = [](Batch batch, MixOptions options) {
    EXPECT_THROW(mix_up(batch, options), Exception);
    EXPECT_THROW(cut_mix(batch, options), Exception);
  };
  MixOptions options = options_for(0);
  options.alpha = 0;
  refused(batch_of(3), options);
  options.alpha = NAN;
  refused(batch_of(3), options);
  options = options_for(0);
  options.num_classes = 2; // there is a class 2
  refused(batch_of(3), options);
  Batch batch = batch_of(3);
  batch.targets = batch.targets.slice(0, 0, 2);
  refused(batch, options_for(0));
  batch = batch_of(3);
  batch.images = batch.images.to(at::kByte);
  refused(batch, options_for(0));
  refused({.images = batch_of(3).images}, options_for(0));
}

// Mean 1/2 and variance 1 / (4 (2 alpha + 1)) of Beta(alpha, alpha).
TEST(Mix, SharesAreOfTheBetaDistribution) {
  for (const double alpha : {0.05, 0.2, 1.0, 4.0}) {
    constexpr std::int64_t kCount = 20'000;
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      internal::Draws draws(1, 0, i, 0);
      const double share = internal::drawn_beta(alpha, draws);
      ASSERT_TRUE(share >= 0 && share <= 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 0.011) << alpha;
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(squares / kCount, variance, 0.03 * variance) << alpha;
  }
}

} // namespace
} // namespace lockstep
