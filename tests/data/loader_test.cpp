// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/loader.h"

#include <atomic>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/data/samplers.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using test::IdxFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::int64_t> count_to(std::int64_t end) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

// Sample i is the pair (i, epoch), its target is i; sample `bad` throws.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t bad = -1)
      : size_(size), bad_(bad) {}
  [[nodiscard]] std::int64_t size() const override {
    return size_;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return {2};
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return size_;
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override {
    ++reads;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == bad_) {
        raise({.code = ErrorCode::kIo, .message = "sample is bad"});
      }
      images[2 * i] = static_cast<float>(indices[i]);
      images[2 * i + 1] = static_cast<float>(epoch);
      targets.classes[i] = indices[i];
    }
  }
  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t size_;
  std::int64_t bad_;
};

std::vector<std::int64_t> drain_sizes(Loader<Batch>& loader) {
  std::vector<std::int64_t> sizes;
  while (const auto batch = loader.next()) {
    sizes.push_back(batch->size());
  }
  return sizes;
}

std::vector<std::int64_t> drain_targets(Loader<Batch>& loader) {
  std::vector<std::int64_t> all;
  while (const auto batch = loader.next()) {
    const auto* first = batch->targets.const_data_ptr<std::int64_t>();
    all.insert(all.end(), first, first + batch->size());
  }
  return all;
}

class LoaderWorkers : public ::testing::TestWithParam<std::int64_t> {
 protected:
  [[nodiscard]] LoaderOptions options(std::int64_t batch_size) const {
    return {.batch_size = batch_size, .workers = GetParam()};
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, LoaderWorkers, ::testing::Values(0, 1, 2, 3));

TEST_P(LoaderWorkers, KeepsTheSmallerLastBatch) {
  Loader loader(std::make_shared<Numbers>(100), options(30));
  loader.start_epoch(count_to(100), 0);
  EXPECT_EQ(loader.batches(), 4);
  EXPECT_THAT(drain_sizes(loader), ElementsAre(30, 30, 30, 10));
  EXPECT_FALSE(loader.next());
}

TEST_P(LoaderWorkers, DropsItWhenAsked) {
  LoaderOptions how = options(30);
  how.drop_last = true;
  Loader loader(std::make_shared<Numbers>(100), how);
  loader.start_epoch(count_to(100), 0);
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_THAT(drain_sizes(loader), ElementsAre(30, 30, 30));
}

TEST_P(LoaderWorkers, GivesTheSamplesInOrder) {
  std::vector<std::int64_t> indices = count_to(1000);
  std::ranges::reverse(indices);
  Loader loader(std::make_shared<Numbers>(1000), options(7));
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(indices, epoch);
    EXPECT_EQ(drain_targets(loader), indices);
  }
}

TEST_P(LoaderWorkers, ShapesAndTypesAreRight) {
  const IdxFolder folder;
  Loader loader(fashion_mnist(folder.path()), options(10));
  loader.start_epoch(count_to(23), 0);
  loader.skip(2);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->images.sizes(), at::IntArrayRef({3, 1, 28, 28}));
  EXPECT_EQ(batch->images.scalar_type(), at::kFloat);
  EXPECT_TRUE(batch->images.is_contiguous());
  EXPECT_EQ(batch->targets.sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(batch->targets.scalar_type(), at::kLong);
}

TEST_P(LoaderWorkers, PassesTheEpochOn) {
  Loader loader(std::make_shared<Numbers>(4), options(4));
  loader.start_epoch(count_to(4), 9);
  EXPECT_EQ(loader.next()->images[3][1].item<float>(), 9.0F);
}

TEST_P(LoaderWorkers, SkipResumesAnEpoch) {
  Loader loader(std::make_shared<Numbers>(100), options(8));
  loader.start_epoch(count_to(100), 0);
  loader.skip(3);
  loader.next();
  loader.skip(2);
  EXPECT_EQ(loader.position(), 6);
  const auto rest = drain_targets(loader);
  ASSERT_EQ(rest.size(), 100 - 48);
  EXPECT_EQ(rest.front(), 48);
  EXPECT_EQ(loader.position(), loader.batches());
}

TEST_P(LoaderWorkers, RejectsSkippingTooFar) {
  Loader loader(std::make_shared<Numbers>(10), options(4));
  loader.start_epoch(count_to(10), 0);
  for (const std::int64_t count : {-1, 4}) {
    const auto error = error_if_any([&] { loader.skip(count); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::kInvalidArgument);
  }
  loader.skip(3);
  EXPECT_FALSE(loader.next());
}

TEST_P(LoaderWorkers, RethrowsInTurnAndStays) {
  Loader loader(std::make_shared<Numbers>(40, /*bad=*/25), options(10));
  loader.start_epoch(count_to(40), 0);
  EXPECT_TRUE(loader.next());
  EXPECT_TRUE(loader.next());
  for (int again = 0; again < 2; ++again) {
    const auto error = error_if_any([&] { loader.next(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message, "sample is bad");
    EXPECT_EQ(loader.position(), 2);
  }
  loader.skip(1);
  EXPECT_EQ(loader.next()->targets[0].item<std::int64_t>(), 30);
  EXPECT_FALSE(loader.next());
}

TEST_P(LoaderWorkers, NewEpochDropsTheOldOne) {
  Loader loader(std::make_shared<Numbers>(100), options(3));
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    loader.start_epoch(count_to(100), epoch);
    const auto batch = loader.next();
    EXPECT_EQ(batch->images[0][0].item<float>(), 0.0F);
    EXPECT_EQ(batch->images[0][1].item<float>(), static_cast<float>(epoch));
  }
}

TEST_P(LoaderWorkers, EndsAtAnyMoment) {
  for (std::int64_t taken = 0; taken < 12; ++taken) {
    Loader loader(std::make_shared<Numbers>(100), options(10));
    loader.start_epoch(count_to(100), 0);
    for (std::int64_t i = 0; i < taken; ++i) {
      loader.next();
    }
  }
  const Loader never_started(std::make_shared<Numbers>(3), options(1));
  EXPECT_EQ(never_started.batches(), 0);
}

TEST_P(LoaderWorkers, BatchesOutliveTheLoader) {
  std::vector<Batch> kept;
  {
    Loader loader(std::make_shared<Numbers>(64), options(4));
    loader.start_epoch(count_to(64), 0);
    while (auto batch = loader.next()) {
      kept.push_back(std::move(*batch));
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(
        kept[i].targets[3].item<std::int64_t>(),
        static_cast<std::int64_t>(4 * i + 3));
    EXPECT_EQ(
        kept[i].images[1][0].item<float>(),
        static_cast<float>(4 * i + 1));
  }
}

TEST_P(LoaderWorkers, ReadsBatchesThatWerePutTogether) {
  Loader loader(
      std::make_shared<Numbers>(9),
      {.batch_size = 4, .workers = GetParam(), .drop_last = true});
  const IndexBatches batches{{8}, {1, 1, 0}, {5, 4, 3, 2}};
  loader.start_batches(batches, 6);
  EXPECT_EQ(loader.batches(), 3);
  for (const auto& expected : batches) {
    const auto batch = loader.next();
    EXPECT_TRUE(torch::equal(batch->targets, torch::tensor(expected)));
    EXPECT_TRUE(torch::equal(
        batch->images.select(1, 1),
        torch::full({std::ssize(expected)}, 6.0F)));
  }
  EXPECT_EQ(loader.next(), std::nullopt);
  loader.start_batches(batches, 7);
  loader.skip(2);
  EXPECT_EQ(loader.next()->size(), 4);
}

TEST(Loader, RefusesBatchesItHasNoRoomFor) {
  Loader loader(std::make_shared<Numbers>(9), {.batch_size = 2});
  const auto refusal = [&](const IndexBatches& batches) {
    return error_if_any([&] { loader.start_batches(batches, 0); })->message;
  };
  EXPECT_EQ(
      refusal({{1}, {1, 2, 3}}),
      "the size of a batch must be 1 to 2, got 3");
  EXPECT_EQ(refusal({{}}), "the size of a batch must be 1 to 2, got 0");
  EXPECT_EQ(refusal({{9}}), "index 9 is outside the dataset of 9 samples");
}

TEST_P(LoaderWorkers, EmptyEpochHasNoBatches) {
  Loader loader(std::make_shared<Numbers>(5), options(2));
  EXPECT_FALSE(loader.next());
  loader.start_epoch({}, 0);
  EXPECT_EQ(loader.batches(), 0);
  EXPECT_THAT(drain_sizes(loader), IsEmpty());
}

TEST_P(LoaderWorkers, RandomDatasetHasNoTargets) {
  Loader loader(std::make_shared<RandomDataset>(5, 100), options(30));
  loader.start_epoch(count_to(100), 0);
  const auto batch = loader.next();
  EXPECT_FALSE(batch->targets.defined());
  EXPECT_EQ(batch->images.sizes(), at::IntArrayRef({30, 5}));
}

TEST(Loader, RunsAheadNoFurtherThanThePrefetch) {
  const auto data = std::make_shared<Numbers>(1000);
  {
    Loader loader(data, {.batch_size = 1, .workers = 2, .prefetch = 3});
    loader.start_epoch(count_to(1000), 0);
    for (int i = 0; i < 10; ++i) {
      loader.next();
    }
  } // joins the workers: the count is final
  EXPECT_LE(data->reads, 10 + 2 * 3);
  EXPECT_GE(data->reads, 10);
}

TEST(Loader, UsesMemoryAgainOnlyWhenReleased) {
  Loader loader(std::make_shared<Numbers>(100), {.batch_size = 10});
  loader.start_epoch(count_to(100), 0);
  auto first = loader.next();
  const void* memory = first->images.const_data_ptr();
  const at::Tensor row = first->images[0]; // a view keeps it, too
  first.reset();
  const auto second = loader.next();
  EXPECT_NE(second->images.const_data_ptr(), memory);
  EXPECT_EQ(row[0].item<float>(), 0.0F);
  auto third = loader.next();
  const void* again = third->images.const_data_ptr();
  const void* targets = third->targets.const_data_ptr();
  third->images.reset();
  const auto fourth = loader.next();
  EXPECT_EQ(fourth->images.const_data_ptr(), again);
  EXPECT_NE(fourth->targets.const_data_ptr(), targets); // they live
  third.reset();
  EXPECT_EQ(loader.next()->targets.const_data_ptr(), targets);
}

TEST(Loader, AsksForNoMoreMemoryThanItsBatchesTake) {
  Loader loader(
      std::make_shared<RandomDataset>(1 << 22, 2),
      {.batch_size = 1 << 24}); // of so many samples: 2^48 bytes
  loader.start_epoch({0, 1}, 0);
  EXPECT_EQ(loader.next()->size(), 2);
}

// Whatever the threads do, the bytes are those of the plain loop.
TEST(Loader, AugmentationIsEqualForAllThreadCounts) {
  const IdxFolder folder;
  const auto data = fashion_mnist(
      folder.path(),
      {.transform = {.crop_padding = 4, .horizontal_flip = true, .seed = 3}});
  const auto run = [&](const LoaderOptions& how) {
    Loader loader(data, how);
    std::vector<at::Tensor> images;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start_epoch(count_to(IdxFolder::kCount), epoch);
      while (const auto batch = loader.next()) {
        images.push_back(batch->images.clone());
      }
    }
    return torch::cat(images);
  };
  const at::Tensor plain = run({.batch_size = 4});
  EXPECT_FALSE(plain.slice(0, 0, 23).equal(plain.slice(0, 23, 46)));
  for (const std::int64_t workers : {0, 1, 2, 3}) {
    for (const std::int64_t prefetch : {1, 2, 5}) {
      for (const std::int64_t batch : {1, 4, 23}) {
        EXPECT_TRUE(
            run({.batch_size = batch, .workers = workers, .prefetch = prefetch})
                .equal(plain));
      }
    }
  }
}

TEST(Loader, RejectsBadArguments) {
  const auto data = std::make_shared<Numbers>(3);
  const auto message = [&](const LoaderOptions& options) {
    const auto error = error_if_any([&] { Loader(data, options); });
    return error && error->code == ErrorCode::kInvalidArgument ? error->message
                                                               : "no error";
  };
  EXPECT_THAT(message({.batch_size = 0}), HasSubstr("batch_size"));
  EXPECT_THAT(message({.workers = -1}), HasSubstr("workers"));
  EXPECT_THAT(message({.prefetch = 0}), HasSubstr("prefetch"));
  EXPECT_TRUE(error_if_any([] { Loader<Batch>(nullptr); }));
  Loader loader(data);
  for (const std::int64_t index : {-1, 3}) {
    const auto error = error_if_any([&] { loader.start_epoch({0, index}, 0); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->message, HasSubstr("outside the dataset of 3"));
  }
}

// The tutorial's toy run: dataset, model, shuffled loader of 30, from one seed.
TEST(Loader, ToyRunEqualsPython) {
  torch::manual_seed(0);
  const auto data = std::make_shared<RandomDataset>(5, 100);
  EXPECT_NEAR(data->data().sum().item<double>(), 32.307945, 1e-5);
  torch::nn::Linear model(5, 2);
  RandomSampler sampler(data->size());
  Loader loader(data, {.batch_size = 30, .workers = 2});
  loader.start_epoch(sampler.next_epoch(), 0);
  constexpr std::array kFirst{-0.473120, 0.268302, -1.396227, -1.661295};
  constexpr std::array kSum{8.35107, 6.96317, 6.19188, 3.77391};
  for (std::size_t i = 0; i < kFirst.size(); ++i) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->size(), i == 3 ? 10 : 30);
    EXPECT_NEAR(batch->images[0][0].item<double>(), kFirst.at(i), 1e-6);
    EXPECT_NEAR(
        model->forward(batch->images).sum().item<double>(),
        kSum.at(i),
        1e-4);
  }
  EXPECT_FALSE(loader.next());
}

} // namespace
} // namespace lockstep
