// SPDX-License-Identifier: BSD-3-Clause
//
// Samples of a program's own as a data set of a trainer.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

Batch first_batch(const std::shared_ptr<Dataset>& data, std::int64_t workers) {
  Loader loader(
      std::shared_ptr<const Dataset>(data),
      {.batch_size = 3, .workers = workers});
  loader.start_epoch(std::vector<std::int64_t>{4, 0, 2}, 0);
  return loader.next().value();
}

TEST(AsDataset, PairsOfAnImageAndAClass) {
  const auto data = as_dataset(
      make_dataset(
          5,
          [](std::int64_t i) {
            return std::tuple{torch::full({1, 2, 2}, i, torch::kDouble), i % 3};
          }),
      {.num_classes = 3, .class_names = {"a", "b", "c"}});
  EXPECT_EQ(data->size(), 5);
  EXPECT_THAT(data->sample_shape(), ElementsAre(1, 2, 2));
  EXPECT_EQ(data->target_format(), (TargetFormat{TargetKind::kClasses, {}}));
  EXPECT_THAT(data->class_names(), ElementsAre("a", "b", "c"));
  for (const std::int64_t workers : {0, 2}) {
    const Batch batch = first_batch(data, workers);
    EXPECT_EQ(batch.images.scalar_type(), torch::kFloat);
    EXPECT_TRUE(batch.images.select(0, 0).eq(4).all().item<bool>());
    EXPECT_TRUE(batch.targets.equal(torch::tensor({1, 0, 2})));
  }
  std::vector<float> images(4);
  std::vector<std::int64_t> targets(1);
  data->read(std::vector<std::int64_t>{4}, 0, images, targets);
  EXPECT_THAT(images, ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(targets, ElementsAre(1));
}

TEST(AsDataset, ABatchUnpacksToImagesAndTargets) {
  const auto data =
      as_dataset(make_dataset(torch::rand({4, 2}), torch::arange(4)));
  Loader loader(std::shared_ptr<const Dataset>(data), {.batch_size = 4});
  for (auto& [images, targets] : loader) {
    EXPECT_EQ(images.size(0), 4);
    EXPECT_TRUE(targets.equal(torch::arange(4)));
    images = at::Tensor(); // the batch's own
  }
  const auto [images, targets] = Batch{.images = torch::ones({2})};
  EXPECT_EQ(images.size(0), 2);
  EXPECT_FALSE(targets.defined());
}

TEST(AsDataset, TargetsOfAnyShape) {
  const at::Tensor images = torch::rand({6, 3, 4, 5});
  const at::Tensor masks = torch::randint(0, 2, {6, 4, 5}, torch::kByte);
  const auto masked = as_dataset(make_dataset(images, masks));
  EXPECT_EQ(
      masked->target_format(),
      (TargetFormat{TargetKind::kClasses, {4, 5}}));
  EXPECT_EQ(masked->num_classes(), 0) << "not said";
  const Batch batch = first_batch(masked, 1);
  EXPECT_TRUE(batch.targets.equal(
      masks.index({torch::tensor({4, 0, 2})}).to(torch::kLong)));
  const auto values =
      as_dataset(make_dataset(images, torch::rand({6, 2}, torch::kDouble)));
  EXPECT_EQ(values->target_format(), (TargetFormat{TargetKind::kValues, {2}}));
  EXPECT_EQ(first_batch(values, 0).targets.scalar_type(), torch::kFloat);
  const auto alone = as_dataset(make_dataset(images));
  EXPECT_EQ(alone->target_format().kind, TargetKind::kNone);
  EXPECT_FALSE(first_batch(alone, 0).targets.defined());
}

TEST(AsDataset, WhatDoesNotFitIsNamed) {
  const at::Tensor images = torch::rand({6, 3});
  EXPECT_THAT(
      message_of([&] {
        as_dataset(make_dataset(torch::rand({0, 3})));
      }),
      HasSubstr("no samples"));
  EXPECT_THAT(
      message_of([&] {
        as_dataset(make_dataset(images, images), {.num_classes = 3});
      }),
      HasSubstr("no numbers of classes"));
  EXPECT_THAT(
      message_of([&] {
        as_dataset(
            make_dataset(images, torch::zeros({6}, torch::kLong)),
            {.num_classes = 3, .class_names = {"a"}});
      }),
      HasSubstr("expected 3 names of classes, got 1"));
  const auto data = as_dataset(
      make_dataset(images, torch::tensor({0, 1, 2, 0, 3, -100})),
      {.num_classes = 3});
  EXPECT_THAT(
      message_of([&] { first_batch(data, 2); }),
      HasSubstr("the target of sample 4 is not a class; expected 0 to 2, "
                "got 3"));
  const auto uneven = as_dataset(make_dataset(5, [](std::int64_t i) {
    return std::tuple{torch::rand({i == 0 ? 2 : 3}), i};
  }));
  Loader loader(std::shared_ptr<const Dataset>(uneven), {.batch_size = 2});
  loader.start_epoch(std::vector<std::int64_t>{3, 4}, 0);
  EXPECT_THAT(
      message_of([&] { loader.next(); }),
      HasSubstr("from number 3 on are not as sample 0; expected images [2]"));
}

// Four batches of two samples.
TEST(AsDataset, ABadBatchStaysUntilItIsSkipped) {
  for (const std::int64_t workers : {0, 2}) {
    for (const std::int64_t bad : {1, 3}) {
      at::Tensor classes = torch::zeros({8}, torch::kLong);
      classes[2 * bad + 1] = 9;
      const auto data = as_dataset(
          make_dataset(torch::arange(8).unsqueeze(1), classes),
          {.num_classes = 3});
      Loader loader(
          std::shared_ptr<const Dataset>(data),
          {.batch_size = 2, .workers = workers});
      std::vector<std::int64_t> seen;
      const auto go_on = [&] {
        for (auto& [images, targets] : loader) {
          seen.push_back(images[0].item<std::int64_t>() / 2);
        }
      };
      for (int again = 0; again < 3; ++again) {
        EXPECT_THAT(message_of(go_on), HasSubstr("is not a class"));
        const LoaderState state = loader.state();
        EXPECT_EQ(state, (LoaderState{.epoch = 0, .samples = 2 * bad}));
        loader.resume(state);
      }
      loader.skip(1);
      go_on();
      EXPECT_THAT(seen, bad == 1 ? ElementsAre(0, 2, 3) : ElementsAre(0, 1, 2));
    }
  }
}

// Both doors of a dataset look at what they give out.
TEST(AsDataset, ReadRefusesSamplesOfAnotherShape) {
  const auto data = as_dataset(make_dataset(2, [](std::int64_t i) {
    return torch::rand({1, 2 + i, 3 - i}); // as many numbers
  }));
  std::vector<float> images(6);
  EXPECT_THAT(
      message_of(
          [&] { data->read(std::vector<std::int64_t>{1}, 0, images, {}); }),
      HasSubstr("expected images [1, 2, 3] and targets [], got [1, 3, 2]"));
}

TEST(AsDataset, APairMayHaveAnyTarget) {
  using Target = std::map<std::string, torch::Tensor>;
  const auto data = as_dataset(make_dataset(5, [](std::int64_t i) {
    const torch::Tensor number = torch::full({2}, static_cast<double>(i));
    return std::pair{number, Target{{"twice", 2 * number}}};
  }));
  const Batch batch = first_batch(data, 0);
  const auto* target = batch.structure.as<Target>();
  ASSERT_NE(target, nullptr);
  EXPECT_TRUE(target->at("twice").equal(2 * batch.images));
}

} // namespace
} // namespace lockstep
