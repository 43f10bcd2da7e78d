// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/dataset.h"

#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using ::testing::HasSubstr;

SharedBytes bytes(std::vector<std::uint8_t> values) {
  const auto owner =
      std::make_shared<std::vector<std::uint8_t>>(std::move(values));
  return {.data = {owner, owner->data()}, .size = owner->size()};
}

// Two images of 1 x 2 pixels in three classes.
ImageDataset two_images(
    std::vector<std::uint8_t> labels,
    std::vector<std::uint8_t> pixels = {0, 51, 102, 255}) {
  return {
      {.shape = {.channels = 1, .height = 1, .width = 2},
       .pixels = bytes(std::move(pixels)),
       .labels = bytes(std::move(labels)),
       .num_classes = 3},
      {.mean = {0.0F}, .std = {1.0F}}};
}

std::string invalid_message(const std::function<void()>& action) {
  const auto error = error_if_any(action);
  return error && error->code == ErrorCode::kInvalidArgument ? error->message
                                                             : "no error";
}

TEST(ImageDataset, ReadsPixelsAndLabels) {
  const auto data = two_images({2, 1});
  std::vector<float> images(4);
  std::vector<std::int64_t> targets(2);
  const std::vector<std::int64_t> order{1, 0};
  data.read(order, 0, images, targets);
  EXPECT_THAT(
      images,
      ::testing::ElementsAre(102 / 255.0F, 1.0F, 0.0F, 51 / 255.0F));
  EXPECT_THAT(targets, ::testing::ElementsAre(1, 2));
}

TEST(ImageDataset, RejectsWhatDoesNotFit) {
  EXPECT_THAT(
      invalid_message([] {
        two_images({0, 1, 2});
      }),
      HasSubstr("expected 3 x 2 bytes, got 4"));
  EXPECT_THAT(
      invalid_message([] {
        two_images({0, 3});
      }),
      HasSubstr("label of sample 1 is not a class; expected 0 to 2, got 3"));
}

template <class Data>
void expect_outside(const Data& data, std::int64_t index) {
  std::vector<float> images(8);
  std::vector<std::int64_t> targets(1);
  const std::vector<std::int64_t> indices{index};
  EXPECT_THAT(
      invalid_message([&] { data.read(indices, 0, images, targets); }),
      HasSubstr("is outside the dataset of 2 samples"));
}

TEST(Dataset, RejectsIndicesOutside) {
  for (const std::int64_t index : {-1, 2}) {
    expect_outside(two_images({0, 1}), index);
    expect_outside(RandomDataset(8, 2), index);
  }
}

TEST(RandomDataset, RejectsNegativeSizes) {
  EXPECT_THAT(
      invalid_message([] { RandomDataset(-1, 2); }),
      HasSubstr("must not be negative, got -1 and 2"));
  EXPECT_THAT(
      invalid_message([] { RandomDataset(1, -2); }),
      HasSubstr("must not be negative"));
}

} // namespace
} // namespace lockstep
