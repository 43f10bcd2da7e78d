// SPDX-License-Identifier: BSD-3-Clause
//
// What a name means to `pick` and `drop`.
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

std::vector<std::string> entries_in(const Value& root) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : root.as_dict()->items) {
    keys.push_back(key_text(key));
  }
  return keys;
}

// 0 and True are keys as '0' and 'True' are.
TEST(PickAndDrop, TakeKeysThatAreNoText) {
  const Value root = Value::dict({{0, 1}, {"a", 2}, {"b", 3}, {true, 4}});
  const auto picked = pick(root, Names{"a", "b"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(entries_in(picked->root), ElementsAre("a", "b"));
  EXPECT_EQ(picked->report.changes.size(), 2U);
  const auto numbers = pick(root, Names{"0", "True"}).value();
  EXPECT_EQ(*numbers.root.as_dict()->items.at(0).first.as_int(), 0);
  EXPECT_THAT(entries_in(numbers.root), ElementsAre("0", "True"));
  const auto dropped = drop(root, Names{"0"}).value();
  EXPECT_THAT(entries_in(dropped.root), ElementsAre("a", "b", "True"));
}

// A key is meant before what lies below it.
TEST(PickAndDrop, TakeAKeyAlone) {
  const Value root = Value::dict({{"a", 1}, {"a.b", 2}, {"a.c", 3}});
  EXPECT_THAT(
      entries_in(drop(root, Names{"a"}).value().root),
      ElementsAre("a.b", "a.c"));
  EXPECT_THAT(
      entries_in(pick(root, Names{"a", "a.c"}).value().root),
      ElementsAre("a", "a.c"));
}

TEST(PickAndDrop, TakeANameTwiceAsOnce) {
  const Value root = Value::dict({{"epoch", 3}, {"w", floats({1})}});
  EXPECT_EQ(*pick(root, Names{"epoch", "epoch"}).value().root.as_int(), 3);
  EXPECT_THAT(
      entries_in(drop(root, Names{"epoch", "epoch"}).value().root),
      ElementsAre("w"));
}

// Modules of another entry than the weights, whose keys hold the dots.
TEST(PickAndDrop, TakeModulesOfAnotherEntry) {
  const auto weights = [] {
    return Value::dict({{"a.w", floats({1})}, {"b.w", floats({2})}});
  };
  const Value root =
      Value::dict({{"model", weights()}, {"ema", weights()}, {"epoch", 3}});
  const auto picked = pick(root, Names{"ema.a"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(entries_in(picked->root), ElementsAre("a.w"));
  EXPECT_EQ(picked->report.weights_key, "ema");
  EXPECT_EQ(pick(root, Names{"ema.a", "ema.b"}).value().report.kept, 2U);
  const Value dropped = drop(root, Names{"ema.a"}).value().root;
  EXPECT_THAT(entries_in(*dropped.find("ema")), ElementsAre("b.w"));
  EXPECT_EQ(dropped.find("model")->as_dict()->items.size(), 2U);
  EXPECT_FALSE(pick(root, Names{"ema.c"}));
  EXPECT_FALSE(pick(root, Names{"ema.a", "model.a"}));
  EXPECT_FALSE(pick(root, Names{"epoch.a"}));
  // A weight comes first.
  const Value both = Value::dict(
      {{"model", Value::dict({{"ema.a.w", floats({1})}})}, {"ema", weights()}});
  EXPECT_EQ(pick(both, Names{"ema.a"}).value().report.weights_key, "model");
}

TEST(PickAndDrop, SayThatNamesAreOfSeveralLevels) {
  const Value root = Value::dict(
      {{"model", Value::dict({{"w", floats({1})}})},
       {"ema", Value::dict({{"a", Value::dict({{"w", floats({1})}})}})},
       {"epoch", 3}});
  const auto picked = pick(root, Names{"ema.a.w", "epoch"});
  ASSERT_FALSE(picked);
  EXPECT_THAT(
      picked.error().message,
      testing::HasSubstr("on another level than the other names"));
}

} // namespace
} // namespace lockstep::ckpt
