// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets of rows of tensors, and of some samples of another dataset.
#include <array>
#include <ranges>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/data/open_dataset.h"
#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

template <class L>
at::Tensor all_of(L& loader) {
  std::vector<at::Tensor> parts;
  for (const auto& batch : loader) {
    if constexpr (requires { batch.images; }) {
      parts.push_back(batch.images);
    } else {
      parts.push_back(batch);
    }
  }
  return torch::cat(parts);
}

class PartDatasets : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(
    Workers,
    PartDatasets,
    testing::Values(0, 2),
    testing::PrintToStringParamName());

TEST_P(PartDatasets, GiveRowsOfTensors) {
  const at::Tensor images = torch::arange(60).reshape({10, 2, 3});
  const at::Tensor values = torch::arange(10, torch::kFloat64) / 3;
  Loader loader(
      make_dataset(images, values),
      {.batch_size = 4, .workers = GetParam(), .sampler = [](std::int64_t) {
         return std::vector<std::int64_t>{9, 0, 4, 4, 7};
       }});
  std::vector<at::Tensor> firsts;
  std::vector<at::Tensor> seconds;
  for (auto& [first, second] : loader) {
    firsts.push_back(first);
    seconds.push_back(second);
  }
  const at::Tensor order = torch::tensor({9, 0, 4, 4, 7});
  ASSERT_EQ(firsts.size(), 2U);
  EXPECT_TRUE(torch::equal(torch::cat(firsts), images.index({order})));
  EXPECT_TRUE(torch::equal(torch::cat(seconds), values.index({order})));
  EXPECT_EQ(firsts[0].sizes(), (std::vector<std::int64_t>{4, 2, 3}));
}

TEST_P(PartDatasets, OfOneTensorGiveTensors) {
  const at::Tensor rows = torch::randn({7, 2});
  Loader loader(make_dataset(rows), {.batch_size = 3, .workers = GetParam()});
  EXPECT_TRUE(torch::equal(all_of(loader), rows));
}

TEST_P(PartDatasets, OfAnyOtherGiveTheirSamples) {
  const at::Tensor rows = torch::arange(20).reshape({10, 2});
  const std::array<std::int64_t, 4> some{8, 1, 1, 5};
  const LoaderOptions options{.batch_size = 3, .workers = GetParam()};
  const at::Tensor expected = rows.index({torch::tensor({8, 1, 1, 5})});

  Loader of_tensors(subset(make_dataset(rows), some), options);
  EXPECT_TRUE(torch::equal(all_of(of_tensors), expected));
  const auto made =
      make_dataset(10, [rows](std::int64_t i) { return rows[i]; });
  Loader of_made(subset(made, some), options);
  EXPECT_TRUE(torch::equal(all_of(of_made), expected));
  Loader of_part(subset(subset(made, some), std::views::iota(1, 3)), options);
  EXPECT_TRUE(torch::equal(all_of(of_part), expected.slice(0, 1, 3)));

  const auto images = std::make_shared<RandomDataset>(5, 10);
  const auto part = subset(images, some);
  EXPECT_EQ(part->sample_shape(), images->sample_shape());
  EXPECT_EQ(part->size(), 4);
  Loader of_images(part, options);
  EXPECT_TRUE(torch::equal(
      all_of(of_images),
      images->data().index({torch::tensor({8, 1, 1, 5})})));
}

TEST_P(PartDatasets, GoOnAtASampleInAnyOrder) {
  const auto data =
      subset(make_dataset(torch::arange(100)), std::views::iota(20, 50));
  const LoaderOptions options{
      .batch_size = 4,
      .workers = GetParam(),
      .shuffle = true};
  torch::manual_seed(3);
  Loader loader(data, options);
  const at::Tensor whole = all_of(loader);
  EXPECT_TRUE(torch::equal(std::get<0>(whole.sort()), torch::arange(20, 50)));

  torch::manual_seed(3);
  Loader stopped(data, options);
  auto it = stopped.begin();
  ++it; // two batches were given out
  Loader other(data, options);
  other.resume(stopped.state());
  EXPECT_TRUE(torch::equal(all_of(other), whole.slice(0, 8)));
}

TEST(PartDataset, HasTheTransformsOfItsSamples) {
  const test::IdxFolder folder;
  const auto whole = fashion_mnist(
      folder.path(),
      {.transform = {.crop_padding = 4, .horizontal_flip = true, .seed = 5}});
  const auto part = subset(whole, std::array{11, 3});
  EXPECT_EQ(part->num_classes(), 10);
  std::vector<float> of_part(2 * 784);
  std::vector<float> of_whole(2 * 784);
  std::vector<std::int64_t> labels(2);
  std::vector<std::int64_t> expected(2);
  part->read(std::vector<std::int64_t>{0, 1}, /*epoch=*/7, of_part, labels);
  whole->read(std::vector<std::int64_t>{11, 3}, 7, of_whole, expected);
  EXPECT_EQ(of_part, of_whole);
  EXPECT_EQ(labels, expected);
}

TEST(PartDataset, RefusesWhatCannotBe) {
  const auto message = [](auto action) {
    const auto error = test::error_if_any(action);
    return error ? error->message : std::string("no error");
  };
  EXPECT_THAT(
      message([] {
        make_dataset(torch::ones({3, 2}), torch::ones(4));
      }),
      HasSubstr("one has 3, another 4"));
  EXPECT_THAT(
      message([] { make_dataset(torch::tensor(1)); }),
      HasSubstr("no rows"));
  EXPECT_THAT(
      message([] { make_dataset(at::Tensor()); }),
      HasSubstr("no rows"));
  const auto data = make_dataset(torch::ones(4));
  for (const std::int64_t index : {-1, 4}) {
    EXPECT_THAT(
        message([&] { subset(data, std::array{index}); }),
        HasSubstr(
            "index " + std::to_string(index) +
            " is outside the dataset of 4 samples"));
  }
  const auto images = std::make_shared<RandomDataset>(5, 10);
  EXPECT_THAT(
      message([&] { subset(images, std::array{10}); }),
      HasSubstr("index 10 is outside the dataset of 10 samples"));
}

TEST(PartDataset, MayBeEmpty) {
  const auto none = subset(make_dataset(torch::ones(4)), std::vector<int>());
  Loader loader(none);
  EXPECT_EQ(loader.begin(), loader.end());
}

} // namespace
} // namespace lockstep
