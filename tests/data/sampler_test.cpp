// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/scoped_variable.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

using test::error_if_any;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::int64_t> order(
    std::int64_t size,
    const DistributedSamplerOptions& options,
    std::int64_t epoch = 0) {
  DistributedSampler sampler(size, options);
  sampler.set_epoch(epoch);
  std::vector<std::int64_t> indices = sampler.indices();
  EXPECT_EQ(std::ssize(indices), sampler.size());
  return indices;
}

// Values of PyTorch 2.13 for 10 samples on 3 ranks.
TEST(DistributedSampler, GivesPythonsOrder) {
  const auto rank = [](std::int64_t r) {
    return DistributedSamplerOptions{.num_replicas = 3, .rank = r};
  };
  EXPECT_THAT(order(10, rank(0)), ElementsAre(4, 5, 0, 2));
  EXPECT_THAT(order(10, rank(1)), ElementsAre(1, 3, 8, 4));
  EXPECT_THAT(order(10, rank(2)), ElementsAre(7, 9, 6, 1));
  EXPECT_THAT(order(10, rank(0), 1), ElementsAre(5, 2, 9, 4));
  EXPECT_THAT(order(10, rank(2), 1), ElementsAre(1, 8, 7, 6));
}

TEST(DistributedSampler, EpochAndSeedAddUp) {
  const auto seeded = order(10, {.num_replicas = 3, .rank = 1, .seed = 1});
  EXPECT_EQ(seeded, order(10, {.num_replicas = 3, .rank = 1}, 1));
  EXPECT_THAT(seeded, ElementsAre(6, 0, 3, 5));
}

TEST(DistributedSampler, DealsToTheRanksOfTheLaunchersJob) {
  const test::ScopedVariable size("WORLD_SIZE", "2");
  const test::ScopedVariable rank("RANK", "1");
  const DistributedSampler sampler(100);
  EXPECT_EQ(sampler.size(), 50);
  EXPECT_EQ(sampler.indices(), order(100, {.num_replicas = 2, .rank = 1}));
  EXPECT_EQ(DistributedSampler(100, {.rank = 0}).size(), 50);
  // As in Python: rank 1 of one.
  EXPECT_THAT(
      error_if_any([] {
        DistributedSampler(100, {.num_replicas = 1});
      })->message,
      HasSubstr("Invalid rank 1"));
}

TEST(DistributedSampler, DealsToTheRanksOfTheDefaultGroup) {
  const test::ScopedVariable size("WORLD_SIZE", "2");
  const test::ScopedVariable rank("RANK", "1");
  set_default_group(RankInfo{.rank = 2, .size = 4}); // by tcp://, not env://
  EXPECT_EQ(
      DistributedSampler(100).indices(),
      order(100, {.num_replicas = 4, .rank = 2}));
  set_default_group(std::nullopt);
  EXPECT_EQ(DistributedSampler(100).size(), 50);
}

TEST(DistributedSampler, WithoutAJobHasAllSamples) {
  EXPECT_EQ(DistributedSampler(100).size(), 100);
}

TEST(DistributedSampler, DropLastCutsTheTail) {
  EXPECT_THAT(
      order(10, {.num_replicas = 3, .rank = 0, .drop_last = true}),
      ElementsAre(4, 5, 0));
  EXPECT_THAT(
      order(9, {.num_replicas = 3, .rank = 2, .drop_last = true}),
      ElementsAre(2, 1, 6));
  EXPECT_THAT(
      order(2, {.num_replicas = 5, .rank = 0, .drop_last = true}),
      IsEmpty());
}

TEST(DistributedSampler, WithoutShuffleCountsUp) {
  EXPECT_THAT(
      order(10, {.num_replicas = 3, .rank = 1, .shuffle = false}),
      ElementsAre(1, 4, 7, 0));
}

TEST(DistributedSampler, RepeatsATinyDataset) {
  std::vector<std::int64_t> all;
  for (std::int64_t r = 0; r < 5; ++r) {
    all.push_back(
        order(2, {.num_replicas = 5, .rank = r, .shuffle = false}).at(0));
  }
  EXPECT_THAT(all, ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(order(0, {.num_replicas = 5, .rank = 2}), IsEmpty());
}

// An evaluation: no sample twice, none left out, the shuffled ones neither.
TEST(DistributedSampler, ExactGivesEverySampleOnce) {
  for (const std::int64_t size : {0, 1, 4, 10, 12}) {
    for (const bool shuffle : {false, true}) {
      std::vector<std::int64_t> all;
      for (std::int64_t r = 0; r < 4; ++r) {
        const auto mine = order(
            size,
            {.num_replicas = 4, .rank = r, .shuffle = shuffle, .exact = true});
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::ranges::sort(all);
      std::vector<std::int64_t> expected(static_cast<std::size_t>(size));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(DistributedSampler, WarnsOfRepeatedSamplesInAnEvaluation) {
  const auto warning = [](DistributedSamplerOptions options) {
    test::Warnings warnings;
    const DistributedSampler sampler(10, options);
    return warnings.text;
  };
  EXPECT_THAT(
      warning({.num_replicas = 4, .shuffle = false}),
      HasSubstr("repeats 2 of 10 samples, so that each of 4 ranks has as "
                "many"));
  EXPECT_EQ(warning({.num_replicas = 4}), "");
  EXPECT_EQ(warning({.num_replicas = 5, .shuffle = false}), "");
  EXPECT_EQ(warning({.num_replicas = 4, .rank = 1, .shuffle = false}), "");
  EXPECT_EQ(
      warning({.num_replicas = 4, .shuffle = false, .drop_last = true}),
      "");
  EXPECT_EQ(warning({.num_replicas = 4, .shuffle = false, .exact = true}), "");
}

TEST(DistributedSampler, LeavesTheDefaultGeneratorAlone) {
  torch::manual_seed(3);
  const at::Tensor first = torch::rand({1});
  torch::manual_seed(3);
  order(100, {});
  EXPECT_TRUE(torch::rand({1}).equal(first));
}

TEST(DistributedSampler, RejectsBadArgumentsInPytorchsWords) {
  const auto message = [](std::int64_t size,
                          DistributedSamplerOptions options) {
    const auto error = error_if_any([&] { DistributedSampler(size, options); });
    return error && error->code == ErrorCode::kInvalidArgument ? error->message
                                                               : "no error";
  };
  EXPECT_EQ(
      message(10, {.num_replicas = 3, .rank = 3}),
      "Invalid rank 3, rank should be in the interval [0, 2]");
  EXPECT_EQ(
      message(10, {.num_replicas = 3, .rank = -1}),
      "Invalid rank -1, rank should be in the interval [0, 2]");
  EXPECT_EQ(
      message(10, {.num_replicas = 0}),
      "num_replicas must be 1 or more, got 0");
  EXPECT_EQ(
      message(10, {.drop_last = true, .exact = true}),
      "drop_last leaves samples out, which exact does not");
  EXPECT_EQ(message(-1, {}), "dataset size must not be negative, got -1");
}

TEST(RandomSampler, GivesPythonsOrder) {
  torch::manual_seed(0);
  RandomSampler sampler(10);
  EXPECT_THAT(sampler.next_epoch(), ElementsAre(6, 7, 1, 4, 2, 0, 9, 8, 3, 5));
}

TEST(RandomSampler, DrawsTwoNumbersAnEpoch) {
  torch::manual_seed(0);
  RandomSampler(10).next_epoch();
  const at::Tensor after = torch::rand({1});
  torch::manual_seed(0);
  torch::empty({2}, torch::kLong).random_();
  EXPECT_TRUE(torch::rand({1}).equal(after));
}

TEST(WeightedRandomSampler, RefusesWhatCannotBeDrawn) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto refused = [](std::vector<double> weights, std::int64_t count) {
    EXPECT_THROW(
        WeightedRandomSampler(std::move(weights), count, false),
        Exception);
  };
  refused({1, 2}, 0);
  refused({1, -1}, 1);
  refused({1, kInf}, 1);
  refused({1, 0, 2}, 3);
  refused({}, 1);
  EXPECT_EQ(
      WeightedRandomSampler({0, 3}, 4).next_epoch(),
      (std::vector<std::int64_t>{1, 1, 1, 1}));
}

TEST(BatchSampler, MakesPythonsBatches) {
  const std::vector<std::int64_t> order{6, 7, 1, 4, 2};
  EXPECT_EQ(make_batches(order, 2), (IndexBatches{{6, 7}, {1, 4}, {2}}));
  EXPECT_EQ(make_batches(order, 2, true), (IndexBatches{{6, 7}, {1, 4}}));
  EXPECT_EQ(make_batches(order, 5, true), (IndexBatches{order}));
  EXPECT_EQ(make_batches(order, 9), (IndexBatches{order}));
  EXPECT_EQ(make_batches({}, 3), IndexBatches());
  EXPECT_EQ(
      error_if_any([&] { make_batches(order, 0); })->message,
      "batch_size should be a positive integer value, but got batch_size=0");
}

TEST(RandomSampler, RejectsWhatHasNoSamples) {
  for (const std::int64_t size : {-1, 0}) {
    EXPECT_EQ(
        error_if_any([&] { RandomSampler sampler(size); })->message,
        format(
            "num_samples should be a positive integer value, but got "
            "num_samples={}",
            size)); // PyTorch's
  }
}

} // namespace
} // namespace lockstep
