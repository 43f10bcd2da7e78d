// SPDX-License-Identifier: BSD-3-Clause
//
// Loaders of any samples: tuples, maps, structs, LibTorch's datasets; epochs in
// loops, samplers, and going on at a sample.
#include "lockstep/data/made_dataset.h"

#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/samplers.h"
#include "lockstep/tensor/rng.h"
#include "tests/data/idx_fixture.h"

namespace program {

struct Sample {
  at::Tensor image = {};
  std::vector<at::Tensor> maps = {};
};

/// Its Structure names the image alone.
struct Labelled {
  at::Tensor image = {};
  std::int64_t label = 0;
};

} // namespace program

template <>
struct lockstep::Structure<program::Labelled>
    : lockstep::Fields<&program::Labelled::image> {};
template <>
struct lockstep::Structure<program::Sample>
    : lockstep::Fields<&program::Sample::image, &program::Sample::maps> {};

namespace lockstep {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

at::Tensor numbered(std::int64_t i) {
  return torch::full({2}, static_cast<double>(i));
}

std::vector<std::int64_t> to_list(const at::Tensor& numbers) {
  const at::Tensor flat = numbers.to(at::kLong).contiguous();
  const auto* first = flat.const_data_ptr<std::int64_t>();
  return {first, first + flat.numel()};
}

// Sample i is its number.
auto numbers(std::int64_t size) {
  return make_dataset(size, [](std::int64_t i) { return i; });
}

template <class L>
std::vector<std::int64_t> epoch_of(L& loader) {
  std::vector<std::int64_t> all;
  for (const at::Tensor& batch : loader) {
    const auto part = to_list(batch);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class MadeDatasets : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, MadeDatasets, testing::Values(0, 1, 3));

TEST_P(MadeDatasets, GiveTuplesOfAnything) {
  const auto data = make_dataset(7, [](std::int64_t i) {
    return std::tuple{
        numbered(i),
        std::map<std::string, at::Tensor>{{"mask", torch::full({1, 3}, i)}},
        i,
        0.5F * static_cast<float>(i),
        static_cast<double>(i) / 4,
        i % 2 == 0,
        "name " + std::to_string(i),
        std::array{numbered(i), numbered(-i)},
        std::pair{std::vector{numbered(i)}, 1}};
  });
  Loader loader(data, {.batch_size = 3, .workers = GetParam()});
  std::vector<std::int64_t> seen;
  for (auto& [image, by_name, number, single, exact, flag, name, both, pair] :
       loader) {
    const std::int64_t size = number.size(0);
    EXPECT_EQ(image.sizes(), (at::IntArrayRef{size, 2}));
    EXPECT_EQ(by_name.at("mask").sizes(), (at::IntArrayRef{size, 1, 3}));
    EXPECT_EQ(number.scalar_type(), at::kLong);
    EXPECT_EQ(single.scalar_type(), at::kFloat);
    EXPECT_EQ(exact.scalar_type(), at::kDouble);
    EXPECT_EQ(flag.scalar_type(), at::kBool);
    EXPECT_EQ(name.front(), "name " + std::to_string(to_list(number).front()));
    EXPECT_TRUE(torch::equal(both[1], -both[0]));
    EXPECT_TRUE(torch::equal(pair.first.front(), image));
    EXPECT_EQ(pair.second.numel(), size);
    const auto part = to_list(number);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST_P(MadeDatasets, GiveStructsAndPlainTensors) {
  const auto data = make_dataset(4, [](std::int64_t i) {
    return program::Sample{numbered(i), {numbered(i), numbered(2 * i)}};
  });
  Loader loader(data, {.batch_size = 4, .workers = GetParam()});
  for (const program::Sample& batch : loader) {
    EXPECT_EQ(batch.image.sizes(), (at::IntArrayRef{4, 2}));
    EXPECT_TRUE(torch::equal(batch.maps[1], 2 * batch.image));
  }
  Loader plain(make_dataset(4, numbered), {.batch_size = 2});
  EXPECT_EQ(plain.begin().operator*().sizes(), (at::IntArrayRef{2, 2}));
}

TEST_P(MadeDatasets, GiveBools) {
  const LoaderOptions how{.batch_size = 4, .workers = GetParam()};
  Loader loader(
      make_dataset(4, [](std::int64_t i) { return i % 2 == 0; }),
      how);
  for (const at::Tensor& batch : loader) {
    EXPECT_THAT(to_list(batch), ElementsAre(1, 0, 1, 0));
  }
  Loader rows(
      make_dataset(
          4,
          [](std::int64_t i) {
            return std::vector<bool>{i == 3, true};
          }),
      how);
  for (const auto& columns : rows) {
    EXPECT_THAT(to_list(columns.at(0)), ElementsAre(0, 0, 0, 1));
    EXPECT_THAT(to_list(columns.at(1)), ElementsAre(1, 1, 1, 1));
  }
}

TEST_P(MadeDatasets, RefuseStructsThatWouldBeMixed) {
  const LoaderOptions how{.batch_size = 2, .workers = GetParam()};
  Loader ragged(
      make_dataset(
          2,
          [](std::int64_t i) {
            const std::vector<at::Tensor> maps(
                static_cast<std::size_t>(i + 1),
                numbered(i));
            return program::Sample{numbered(i), maps};
          }),
      how);
  EXPECT_THAT(message_of([&] { ragged.begin(); }), HasSubstr("built alike"));
  Loader labelled(
      make_dataset(
          2,
          [](std::int64_t i) {
            return program::Labelled{numbered(i), i};
          }),
      how);
  EXPECT_THAT(
      message_of([&] { labelled.begin(); }),
      HasSubstr("leaves members out"));
}

TEST_P(MadeDatasets, OfLibTorchAreWrapped) {
  struct Squares : torch::data::datasets::Dataset<Squares> {
    torch::data::Example<> get(std::size_t index) override {
      const auto i = static_cast<std::int64_t>(index);
      return {numbered(i), torch::tensor(i * i)};
    }
    [[nodiscard]] c10::optional<std::size_t> size() const override {
      return 5;
    }
  };
  Loader loader(
      make_dataset(Squares()),
      {.batch_size = 5, .workers = GetParam()});
  for (auto& [data, target] : loader) {
    EXPECT_EQ(data.sizes(), (at::IntArrayRef{5, 2}));
    EXPECT_THAT(to_list(target), ElementsAre(0, 1, 4, 9, 16));
  }
}

TEST_P(MadeDatasets, SayWhatDoesNotFit) {
  const auto ragged = make_dataset(4, [](std::int64_t i) {
    return torch::zeros({i == 2 ? 3 : 2});
  });
  Loader loader(ragged, {.batch_size = 4, .workers = GetParam()});
  EXPECT_THAT(
      message_of([&] { loader.begin(); }),
      HasSubstr("one shape: sample 0 has (2,), sample 2 (3,)"));
  const auto throwing = make_dataset(4, [](std::int64_t i) {
    if (i == 3) {
      throw std::out_of_range("sample 3");
    }
    return i;
  });
  Loader other(throwing, {.batch_size = 2, .workers = GetParam()});
  EXPECT_THROW(epoch_of(other), std::out_of_range);
  const auto large = make_dataset(2, [](std::int64_t i) {
    return i == 0 ? std::uint64_t(INT64_MAX) : std::uint64_t(INT64_MAX) + 1;
  });
  Loader wide(large, {.batch_size = 2, .workers = GetParam()});
  EXPECT_THAT(
      message_of([&] { wide.begin(); }),
      HasSubstr("sample 1 is 9223372036854775808"));
}

TEST_P(MadeDatasets, HaveAnotherOrderInEachEpoch) {
  Loader loader(
      numbers(20),
      {.batch_size = 6, .workers = GetParam(), .shuffle = true});
  torch::manual_seed(4);
  const auto first = epoch_of(loader);
  const auto second = epoch_of(loader);
  EXPECT_NE(first, second);
  EXPECT_THAT(first, UnorderedElementsAreArray(second));
  EXPECT_EQ(loader.epoch(), 1);
  // As by hand, and so as in Python.
  torch::manual_seed(4);
  RandomSampler sampler(20);
  EXPECT_EQ(first, sampler.next_epoch());
  EXPECT_EQ(second, sampler.next_epoch());
}

TEST_P(MadeDatasets, TakeSamplersOfAnyKind) {
  const auto order = [&](const SampleOrder& sampler) {
    Loader loader(
        numbers(10),
        {.batch_size = 4, .workers = GetParam(), .sampler = sampler});
    std::vector<std::vector<std::int64_t>> epochs{epoch_of(loader)};
    epochs.push_back(epoch_of(loader));
    return epochs;
  };
  DistributedSampler rank(10, {.num_replicas = 2, .rank = 1, .seed = 3});
  const auto first = rank.indices();
  rank.set_epoch(1);
  const auto second = rank.indices();
  rank.set_epoch(0);
  EXPECT_THAT(order(rank), ElementsAre(first, second));
  EXPECT_THAT(
      order([](std::int64_t epoch) {
        return std::vector<std::int64_t>{epoch, 7};
      }),
      ElementsAre(ElementsAre(0, 7), ElementsAre(1, 7)));
  torch::manual_seed(2);
  const auto drawn = order(WeightedRandomSampler({0, 0, 1, 1}, 6));
  torch::manual_seed(2);
  WeightedRandomSampler same({0, 0, 1, 1}, 6);
  EXPECT_EQ(drawn[0], same.next_epoch());
  EXPECT_EQ(drawn[1], same.next_epoch());
  EXPECT_TRUE(SampleOrder(std::make_shared<RandomSampler>(4)).draws());
  EXPECT_FALSE(SampleOrder(std::make_shared<DistributedSampler>(4)).draws());
}

TEST_P(MadeDatasets, GoOnAtASample) {
  const LoaderOptions how{
      .batch_size = 3,
      .workers = GetParam(),
      .shuffle = true};
  torch::manual_seed(6);
  Loader whole(numbers(20), how);
  epoch_of(whole);
  const auto second = epoch_of(whole);
  const auto third = epoch_of(whole);

  torch::manual_seed(6);
  Loader cut(numbers(20), how);
  epoch_of(cut);
  auto it = cut.begin();
  ++it; // two batches were taken
  const LoaderState state = cut.state();
  EXPECT_EQ(state.samples, 6);
  const at::Tensor generator = get_rng_state();

  LoaderOptions other = how;
  other.batch_size = 5;
  Loader resumed(numbers(20), other);
  resumed.resume(state);
  set_rng_state(generator);
  EXPECT_EQ(
      epoch_of(resumed),
      std::vector<std::int64_t>(second.begin() + 6, second.end()));
  EXPECT_EQ(resumed.state().samples, 20);
  EXPECT_EQ(epoch_of(resumed), third);
}

TEST_P(MadeDatasets, GoOnWithTheNextEpochAfterAWholeOne) {
  torch::manual_seed(6);
  const LoaderOptions how{
      .batch_size = 4,
      .workers = GetParam(),
      .shuffle = true};
  Loader first(numbers(8), how);
  epoch_of(first);
  Loader resumed(numbers(8), how);
  resumed.resume(first.state());
  const at::Tensor generator = get_rng_state();
  const auto next = epoch_of(first);
  set_rng_state(generator);
  EXPECT_EQ(epoch_of(resumed), next);
  EXPECT_EQ(resumed.epoch(), 1);
}

TEST_P(MadeDatasets, StartAnewWithTheStateOfANewLoader) {
  const LoaderOptions how{
      .batch_size = 4,
      .workers = GetParam(),
      .shuffle = true};
  const LoaderState anew = Loader(numbers(10), how).state();
  EXPECT_EQ(anew, (LoaderState{.epoch = -1}));
  const auto as_new = [&](auto& loader) {
    loader.resume(anew);
    EXPECT_EQ(loader.state(), anew);
    EXPECT_EQ(loader.epoch(), -1);
    EXPECT_EQ(loader.batches(), 0);
    EXPECT_EQ(loader.position(), 0);
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(epoch_of(loader).size(), 10U);
    EXPECT_EQ(loader.epoch(), 0);
  };
  Loader whole(numbers(10), how);
  epoch_of(whole);
  as_new(whole);
  Loader cut(numbers(10), how);
  cut.begin();
  as_new(cut);
  Loader resumed(numbers(10), how);
  resumed.resume({.epoch = 2, .samples = 3});
  as_new(resumed);
  Loader by_hand(numbers(10), how);
  by_hand.start_epoch({1, 2}, 7);
  as_new(by_hand);
}

TEST_P(MadeDatasets, CountAnEpochThatDropsTheLastAsWhole) {
  Loader loader(
      numbers(10),
      {.batch_size = 4, .workers = GetParam(), .drop_last = true});
  epoch_of(loader);
  EXPECT_EQ(loader.state(), (LoaderState{.epoch = 0, .samples = 10}));
  Loader other(numbers(10), {.batch_size = 2, .workers = GetParam()});
  other.resume(loader.state());
  EXPECT_EQ(epoch_of(other).size(), 10U);
  EXPECT_EQ(other.epoch(), 1);
}

TEST_P(MadeDatasets, SayThatAnOrderByHandCannotBeFoundAgain) {
  Loader loader(numbers(4), {.batch_size = 2, .workers = GetParam()});
  loader.start_epoch({3, 2, 1, 0}, 5);
  loader.next();
  EXPECT_THAT(
      message_of([&] { (void)loader.state(); }),
      HasSubstr("start_epoch"));
  epoch_of(loader);
  EXPECT_EQ(loader.state().epoch, 6);
}

TEST(MadeDataset, RefusesWhatCannotBe) {
  EXPECT_THAT(
      message_of([] { make_dataset(-1, numbered); }),
      HasSubstr("-1 samples"));
  const auto data = numbers(4);
  EXPECT_THAT(
      message_of([&] {
        Loader loader(
            data,
            {.shuffle = true, .sampler = DistributedSampler(4)});
      }),
      HasSubstr("both say the order"));
  EXPECT_THAT(
      message_of([&] { Loader loader(numbers(0), {.shuffle = true}); }),
      HasSubstr("without samples cannot be shuffled"));
  EXPECT_EQ(Loader(numbers(0)).next(), std::nullopt) << "as in Python";
  Loader drawing(data, {.sampler = RandomSampler(4)});
  EXPECT_THAT(
      message_of([&] { drawing.resume({.epoch = 1, .samples = 2}); }),
      HasSubstr("next_epoch()"));
  Loader loader(data, {.shuffle = true});
  EXPECT_THAT(
      message_of([&] { loader.resume({.epoch = 1, .samples = 5}); }),
      HasSubstr("after 5 samples of an epoch of 4"));
}

} // namespace
} // namespace lockstep
