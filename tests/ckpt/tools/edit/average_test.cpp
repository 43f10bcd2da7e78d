// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/oracle_support.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Averaged> averaged_of(const std::vector<Value>& roots) {
  std::vector<NamedRoot> files;
  for (const Value& root : roots) {
    files.push_back({.name = format("{}.pt", files.size()), .root = root});
  }
  return average(files);
}

std::string averaging_problem(const std::vector<Value>& roots) {
  const auto mean = averaged_of(roots);
  return mean ? "" : mean.error().detail + " " + to_string(mean.error());
}

TEST(Average, IsTheMeanInTheTensorsOwnType) {
  const auto mean = averaged_of(
      {Value::dict({{"w", floats({1, 2})}}),
       Value::dict({{"w", floats({2, 4})}}),
       Value::dict({{"w", floats({6, 0})}})});
  ASSERT_TRUE(mean) << to_string(mean.error());
  EXPECT_EQ(
      *digest(mean->weights),
      *digest(Value::dict({{"w", floats({3, 2})}})));
  EXPECT_EQ(mean->averaged, 1U);
}

TEST(Average, TakesCountsAndOrderFromTheLast) {
  const auto counts = [](std::int64_t n) {
    return tensor_of<std::int64_t>(DType::kInt64, {n}, {1});
  };
  const auto mean = averaged_of(
      {Value::dict({{"w", floats({1})}, {"n", counts(5)}}),
       Value::dict(
           {{"epoch", 7},
            {"state_dict",
             Value::dict({{"n", counts(9)}, {"w", floats({2})}})}})});
  ASSERT_TRUE(mean) << to_string(mean.error());
  EXPECT_THAT(mean->kept, ElementsAre("n"));
  const Dict* weights = mean->weights.as_dict();
  EXPECT_EQ(weights->items[0].first.text(), "n");
  EXPECT_EQ(*digest(*mean->weights.find("n")), *digest(Value(counts(9))));
  EXPECT_EQ(*mean->root.find("epoch")->as_int(), 7);
  EXPECT_EQ(
      *digest(*mean->root.find("state_dict")->find("w")),
      *digest(Value(floats({1.5}))));
}

TEST(Average, TellsOfEverythingThatDoesNotFit) {
  const std::string text = averaging_problem(
      {Value::dict(
           {{"w", floats({1})},
            {"x", floats({1})},
            {"y", floats({1})},
            {"only", floats({1})}}),
       Value::dict(
           {{"w", floats({1})},
            {"x", floats({1, 2})},
            {"y", tensor_of<double>(DType::kFloat64, {1}, {1})},
            {"more", floats({1})}})});
  for (const char* part :
       {"E_NOT_ALIKE",
        "'only' is in 0.pt alone",
        "'more' is missing in 0.pt",
        "'x' in 0.pt is float32 [1], not float32 [2] as in the last",
        "'y' in 0.pt is float32 [1], not float64 [1] as in the last"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(
      averaging_problem(
          {Value::dict({{"w", floats({1})}, {"s", "text"}}),
           Value::dict({{"w", floats({1})}, {"s", "text"}})}),
      HasSubstr("'s' in 1.pt is no tensor"));
  EXPECT_THAT(
      averaging_problem({Value::dict({{"w", floats({1})}})}),
      HasSubstr("at least two"));
  const Tensor small = tensor_of<char>(DType::kFloat8E5M2, {1}, {1});
  EXPECT_THAT(
      averaging_problem(
          {Value::dict({{"w", small}}), Value::dict({{"w", small}})}),
      HasSubstr("no mean is taken"));
}

// A file of a few bytes that would become 4 TB.
TEST(Average, RefusesViewsThatRepeatTheirBytesWithoutEnd) {
  Tensor view = floats({1});
  view.sizes = {1LL << 40};
  view.strides = {0};
  const Value root = Value::dict({{"w", Value(view)}});
  EXPECT_THAT(
      averaging_problem({root, root}),
      HasSubstr("tensor 'w': repeats the 4 B of its storage"));
}

TEST(Average, TakesItsBoundFromTheCaller) {
  Tensor view = floats({1});
  view.sizes = {300};
  view.strides = {0};
  const Value root = Value::dict({{"w", Value(view)}});
  const std::array<NamedRoot, 2> files{{{"a.pt", root}, {"b.pt", root}}};
  EXPECT_EQ(average(files, {}, 1000).error().detail, "E_LIMIT");
  const auto mean = average(files, {}, 2000);
  ASSERT_TRUE(mean) << to_string(mean.error());
  EXPECT_EQ(mean->weights.find("w")->as_tensor()->storage->nbytes, 1200U);
}

TEST(Average, KeepsWhatIsSharedInEveryFile) {
  const auto root = [](float value, bool is_shared) {
    const Tensor one = floats({value});
    return Value::dict({{"a", one}, {"b", is_shared ? one : floats({value})}});
  };
  const auto storages = [](const Value& weights) {
    return weights.find("a")->as_tensor()->storage ==
           weights.find("b")->as_tensor()->storage;
  };
  EXPECT_TRUE(storages(averaged_of({root(1, true), root(2, true)})->weights));
  EXPECT_FALSE(storages(averaged_of({root(1, true), root(2, false)})->weights));
}

TEST(AverageOracle, HasTheBitsOfTimmsSum) {
  const test::ScratchDir folder;
  test::run_python("ckpt_average.py", {folder.path()});
  std::vector<NamedRoot> files;
  for (const char* name : {"a.pt", "b.pt", "c.pt"}) {
    const auto file = load(folder / name);
    ASSERT_TRUE(file) << to_string(file.error());
    files.push_back({.name = name, .root = file->root});
  }
  const auto mean = average(files);
  ASSERT_TRUE(mean) << to_string(mean.error());
  ASSERT_TRUE(save(folder / "ours.pt", mean->weights));
  const auto ours = load(folder / "ours.pt");
  const auto theirs = load(folder / "mean.pt");
  ASSERT_TRUE(ours && theirs);
  EXPECT_EQ(test::rows_of(ours->root), test::rows_of(theirs->root));
  EXPECT_THAT(mean->kept, ElementsAre("mask", "1.num_batches_tracked"));
  EXPECT_EQ(
      ours->root.find("3.weight")->as_tensor()->storage,
      ours->root.find("tied.weight")->as_tensor()->storage);
}

} // namespace
} // namespace lockstep::ckpt
