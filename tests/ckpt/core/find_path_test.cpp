// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The integer at `path`; -1 if nothing is there.
std::int64_t at(const Value& root, std::string_view path) {
  const auto found = find_path(root, path);
  return found && found->as_int() != nullptr ? *found->as_int() : -1;
}

std::string hint_of(const Value& root, std::string_view path) {
  const auto found = find_path(root, path);
  EXPECT_FALSE(found) << path;
  return found ? "" : found.error().hint;
}

Value module(std::vector<Item> state) {
  Dict dict;
  dict.items = std::move(state);
  dict.items.emplace_back("training", 1);
  return Object{
      .global = "m.Net",
      .state = std::make_shared<Value>(std::move(dict))};
}

Value net() {
  const Value layer = module(
      {{"_parameters", Value::dict({{"weight", 2}})},
       {"_buffers", Value::dict({{"hidden", 3}})},
       {"_non_persistent_buffers_set", Set{{"hidden"}}},
       {"_modules", Value::dict({})}});
  return module({{"_modules", Value::dict({{"fc", layer}})}});
}

TEST(FindPath, FindsNestedValues) {
  const Value root = Value::dict(
      {{"state_dict", Value::dict({{"fc.weight", 1}, {"fc.bias", 2}})},
       {"groups", Value::list({Value::dict({{"lr", 5}})})},
       {"pair", Value::tuple({6, 7})},
       {8, 9}});
  EXPECT_EQ(at(root, "state_dict.fc.bias"), 2);
  EXPECT_EQ(at(root, "groups.0.lr"), 5);
  EXPECT_EQ(at(root, "pair.1"), 7);
  EXPECT_EQ(at(root, "8"), 9);
  EXPECT_EQ((*find_path(root, "")).address(), root.address());
  EXPECT_EQ(
      (*find_path(root, "groups")).address(),
      root.find("groups")->address());
}

// What no key leads to has the names that lists give tensors there.
TEST(FindPath, FindsWhatLiesInOtherPlaces) {
  Dict with_attributes;
  with_attributes.attributes.emplace_back("a", 6);
  with_attributes.attributes.emplace_back("a.b", 8);
  with_attributes.attributes.emplace_back("ema", 5);
  const Object call{
      .global = "m.make",
      .args =
          std::make_shared<Value>(Value::tuple({1, Value::dict({{"k", 2}})}))};
  const Value root = Value::dict(
      {{"call", call},
       {"set", Set{{3}}},
       {"dict", Value::dict({{Value::tuple({0, 4}), 0}})},
       {"attributes", std::move(with_attributes)},
       {"net", net()},
       {"<args>", 7}});
  EXPECT_EQ(at(root, "call.<args>.0"), 1);
  EXPECT_EQ(at(root, "call.<args>.1.k"), 2);
  EXPECT_EQ(at(root, "set.<set>.0"), 3);
  EXPECT_EQ(at(root, "dict.<keys>.0.1"), 4);
  EXPECT_EQ(at(root, "attributes.<attributes>.ema"), 5);
  EXPECT_EQ(at(root, "attributes.<attributes>.a.b"), 8);
  EXPECT_EQ(at(root, "net.<state>.training"), 1);
  EXPECT_EQ(at(root, "<args>"), 7);
  EXPECT_EQ(at(root, "set.<set>.1"), -1);
  EXPECT_EQ(at(root, "call.<args>.2"), -1);
}

TEST(FindPath, TriesEveryWayThroughKeysWithDots) {
  const Value root = Value::dict(
      {{"a", Value::dict({{"b", Value::dict({{"x", 1}})}})},
       {"a.b", Value::dict({{"y", 2}})},
       {"a.b.z", 3},
       {"", Value::dict({{"a", 4}})},
       {"c", Value::dict({{"", 5}})}});
  EXPECT_EQ(at(root, "a.b.x"), 1);
  EXPECT_EQ(at(root, "a.b.y"), 2);
  EXPECT_EQ(at(root, "a.b.z"), 3);
  EXPECT_EQ(at(root, ".a"), 4);
  EXPECT_EQ(at(root, "c."), 5);
}

TEST(FindPath, RefusesANameThatTwoValuesHave) {
  const Value root = Value::dict(
      {{"a", Value::dict({{"b", 1}, {"c", 2}})},
       {"a.b", 3},
       {"7", 4},
       {7, 5},
       {"deep", Value::list({Value::dict({{"x.y", 6}, {"x", 7}})})}});
  for (const char* path : {"a.b", "7"}) {
    EXPECT_EQ(find_path(root, path).error().detail, "E_AMBIGUOUS") << path;
    EXPECT_FALSE(check_unambiguous(root, path)) << path;
    const Value outer = Value::list({root});
    EXPECT_FALSE(check_unambiguous(outer, std::string("0.") + path)) << path;
  }
  EXPECT_EQ(at(root, "a.c"), 2);
  EXPECT_EQ(at(root, "deep.0.x.y"), 6);
  EXPECT_TRUE(check_unambiguous(root, "nothing"));
}

TEST(FindPath, TakesWholeStepsOnly) {
  const Value root = Value::dict(
      {{"ab", 1},
       {"list", Value::list({1, 2})},
       {"n", 3},
       {"d", Value::dict({{"c", 4}})}});
  for (const char* path :
       {"a",
        "abc",
        "ab.",
        "dxc",
        "list.2",
        "list.-1",
        "list.01",
        "list.",
        "n.0"}) {
    EXPECT_FALSE(find_path(root, path)) << path;
  }
  EXPECT_EQ(find_path(root, "list.2").error().detail, "E_NO_KEY");
}

TEST(FindPath, GoesThroughModulesByNameAndAsTheyAre) {
  const Value root = Value::dict({{"net", net()}});
  EXPECT_EQ(at(root, "net.fc.weight"), 2);
  EXPECT_EQ(at(root, "net.fc.hidden"), 3);
  EXPECT_EQ(at(root, "net.fc.training"), 1);
  EXPECT_EQ(at(root, "net._modules.fc._parameters.weight"), 2);
}

TEST(FindPath, GoesThroughStateAndItemsOfObjects) {
  const Value object = Object{
      .global = "m.C",
      .state = std::make_shared<Value>(Value::dict({{"lr", 1}})),
      .items = {{"key", 2}}};
  EXPECT_EQ(at(Value::list({object}), "0.lr"), 1);
  EXPECT_EQ(at(Value::list({object}), "0.key"), 2);
  EXPECT_FALSE(find_path(Object{.global = "m.C"}, "lr"));
}

TEST(FindPath, SuggestsTheNearestName) {
  const Value root = Value::dict(
      {{"epoch", 3},
       {"model", Value::dict({{"layer1.0.weight", floats({1})}})}});
  EXPECT_THAT(hint_of(root, "epocj"), HasSubstr("'epoch'"));
  EXPECT_THAT(
      hint_of(root, "model.layer1.0.weigth"),
      HasSubstr("'model.layer1.0.weight'"));
  EXPECT_THAT(hint_of(root, "model.layer2"), HasSubstr("'model.layer1'"));
  // The weights by their own names.
  EXPECT_THAT(
      hint_of(root, "layer1.0.weigth"),
      HasSubstr("'model.layer1.0.weight'"));
  EXPECT_THAT(hint_of(root, "zzzzzzzzzzzz"), HasSubstr("lockstep ckpt ls"));
}

// Its fronts together would have half a terabyte.
TEST(FindPath, SuggestsNoHostileKey) {
  const Value root = Value::dict(
      {{std::string(1'000'000, '.'), floats({1})},
       {"layer1.0.weight", floats({1})}});
  EXPECT_THAT(hint_of(root, "layer2"), HasSubstr("'layer1'"));
}

// Keys that match in two ways at each of 40 levels: 2^40 ways.
TEST(FindPath, GivesUpOnKeysThatMatchWithoutEnd) {
  Value node = Value::dict({{"end", 1}});
  std::string path;
  for (int i = 0; i < 40; ++i) {
    node = Value::dict({{"a", Value::dict({{"a", node}})}, {"a.a", node}});
    path += "a.a.";
  }
  EXPECT_FALSE(find_path(node, path + "missing"));
  EXPECT_EQ(find_path(node, path + "end").error().detail, "E_AMBIGUOUS");
}

TEST(FindBelow, GathersTensorsUnderTheRestOfTheirNames) {
  const Value root = Value::dict(
      {{"layer1.0.weight", floats({1})},
       {"layer1", Value::dict({{"0", Value::dict({{"bias", floats({2})}})}})},
       {"layer10.weight", floats({3})},
       {"layer1.0", 4}});
  const auto found = find_below(root, "layer1.0");
  ASSERT_TRUE(found && *found);
  EXPECT_THAT(keys_of(**found), ElementsAre("weight", "bias"));
  const auto none = find_below(root, "layer");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

// A module of flat names is no value of its own.
TEST(NearName, IsNeverTheNameItself) {
  const Value root = Value::dict(
      {{"state_dict",
        Value::dict({{"3.weight", 1}, {"3.bias", bytes_tensor("a", {1})}})}});
  EXPECT_EQ(near_name(root, "state_dict.3"), "");
  EXPECT_EQ(near_name(root, "3"), "state_dict.3"); // below its entry
  EXPECT_EQ(near_name(root, "state_dict.3.bia"), "state_dict.3.bias");
}

} // namespace
} // namespace lockstep::ckpt
