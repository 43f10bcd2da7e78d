// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/value.h"

#include <type_traits>

#include <gtest/gtest.h>

namespace lockstep::ckpt {
namespace {

// A pointer converts to bool; as a value it would silently be True.
static_assert(std::is_constructible_v<Value, bool>);
static_assert(std::is_convertible_v<bool, Value>);
static_assert(!std::is_constructible_v<Value, const int*>);
static_assert(!std::is_constructible_v<Value, const Value*>);
static_assert(!std::is_constructible_v<Value, Tensor*>);
static_assert(!std::is_constructible_v<Value, void (*)()>);
static_assert(!std::is_assignable_v<Value&, Dict*>);

TEST(Value, TakesBoolsAndTextsAsWhatTheyAre) {
  const bool yes = true;
  ASSERT_NE(Value(yes).as_bool(), nullptr);
  EXPECT_TRUE(*Value(yes).as_bool());
  EXPECT_EQ(Value("text").as_bool(), nullptr);
  EXPECT_EQ(*Value("text").as_string(), "text");
  EXPECT_EQ(*Value(1).as_int(), 1);
}

constexpr int kDeep = 200'000;

TEST(Value, DeepTreesDieWithoutRecursion) {
  Value list;
  Value dict;
  Value object;
  for (int i = 0; i < kDeep; ++i) {
    list = List{{1, std::move(list)}};
    dict = Dict{.items = {{"below", std::move(dict)}}};
    object = Object{.state = std::make_shared<Value>(std::move(object))};
  }
  EXPECT_TRUE(list.is_container() && dict.is_container());
  EXPECT_TRUE(object.is_container());
}

// The last of several references ends a node, wherever it is.
TEST(Value, SharedTreesDieWithoutRecursion) {
  Value twice = List{};
  for (int i = 0; i < kDeep; ++i) {
    twice = Tuple{{twice, twice}};
  }
  EXPECT_TRUE(twice.is_container());
}

// Looking through the list for each of its owners would take hours.
TEST(Value, ManyOwnersOfALongListDieInTurn) {
  constexpr std::size_t kMany = 1'000'000;
  Value owners = List{std::vector<Value>(
      kMany,
      Value(List{std::vector<Value>(kMany, Value(1))}))};
  EXPECT_EQ(owners.as_list()->items.size(), kMany);
  owners = None{};
  EXPECT_TRUE(owners.is_none());
}

TEST(Value, SharedPartsOutliveTheWhole) {
  const Value part = List{{"kept", Tuple{{1, 2}}}};
  { const Value whole = Dict{.items = {{"a", part}, {"b", Tuple{{part}}}}}; }
  ASSERT_EQ(part.as_list()->items.size(), 2U);
  EXPECT_EQ(*part.as_list()->items[0].as_string(), "kept");
  EXPECT_EQ(part.as_list()->items[1].as_tuple()->items.size(), 2U);
}

TEST(Value, TensorsAndScalarsAreNoContainers) {
  EXPECT_FALSE(Value(Tensor{}).is_container());
  EXPECT_FALSE(Value("text").is_container());
  EXPECT_FALSE(Value().is_container());
  EXPECT_TRUE(Value(List{}).is_container());
  EXPECT_TRUE(Value(Object{}).is_container());
}

} // namespace
} // namespace lockstep::ckpt
