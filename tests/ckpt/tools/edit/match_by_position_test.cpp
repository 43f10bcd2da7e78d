// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/match.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Shapes = std::vector<NamedShape>;

const Shapes kModel{
    {"conv.weight", {8, 3, 3, 3}},
    {"conv.bias", {8}},
    {"bn.weight", {8}},
    {"fc.weight", {10, 8}},
    {"fc.bias", {10}}};

Shapes renamed(const Shapes& entries) {
  Shapes result = entries;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].name = "param_" + std::to_string(i);
  }
  return result;
}

TEST(MatchByPosition, PairsEqualListsOneByOne) {
  const auto match = match_by_position(renamed(kModel), kModel);
  ASSERT_TRUE(match) << to_string(match.error());
  EXPECT_TRUE(match->is_complete());
  ASSERT_EQ(match->pairs.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(match->pairs[i], (PositionPair{.from = i, .to = i}));
  }
  EXPECT_THAT(leftovers_text(*match), IsEmpty());
}

TEST(MatchByPosition, NamesWhatIsLeftOverInTorchsWords) {
  Shapes file = renamed(kModel);
  file.insert(file.begin() + 3, {"extra", {5, 5}});
  file.pop_back();
  const auto match = match_by_position(file, kModel);
  ASSERT_TRUE(match) << to_string(match.error());
  EXPECT_FALSE(match->is_complete());
  EXPECT_EQ(match->pairs.back(), (PositionPair{.from = 4, .to = 3}));
  EXPECT_EQ(
      leftovers_text(*match),
      "Missing key(s) in state_dict: \"fc.bias\". \n"
      "Unexpected key(s) in state_dict: \"extra\". \n");
}

// One of conv.bias and bn.weight is missing: nothing says which.
TEST(MatchByPosition, RefusesAmbiguity) {
  Shapes file = renamed(kModel);
  file.erase(file.begin() + 1);
  const auto match = match_by_position(file, kModel);
  ASSERT_FALSE(match);
  EXPECT_EQ(match.error().detail, "E_AMBIGUOUS");
  EXPECT_EQ(match.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(
      match.error().message,
      HasSubstr("'param_2' [8] fits 'conv.bias' and 'bn.weight'"));
  const auto other_way = match_by_position(kModel, file);
  ASSERT_FALSE(other_way);
  EXPECT_THAT(
      other_way.error().message,
      HasSubstr("'param_2' [8] fits 'conv.bias' and 'bn.weight'"));
}

TEST(MatchByPosition, RefusesCrossedOrdersAndForeignShapes) {
  const Shapes file{{"a", {1}}, {"b", {2}}};
  const Shapes crossed{{"x", {2}}, {"y", {1}}};
  EXPECT_EQ(match_by_position(file, crossed).error().detail, "E_AMBIGUOUS");
  const Shapes foreign{{"x", {3}}};
  EXPECT_EQ(match_by_position(file, foreign).error().detail, "E_NO_MATCH");
  EXPECT_EQ(match_by_position({}, {}).error().detail, "E_NO_MATCH");
}

TEST(MatchByPosition, BoundsItsWork) {
  Shapes file(4001, NamedShape{.name = "a", .sizes = {1}});
  const auto equal = match_by_position(file, file);
  ASSERT_TRUE(equal);
  EXPECT_EQ(equal->pairs.size(), 4001U);
  Shapes other = file;
  other.back().sizes = {2};
  EXPECT_EQ(match_by_position(file, other).error().detail, "E_LIMIT");
}

TEST(RenameByPosition, GivesTheModelsNamesAndMetadata) {
  Value weights = Value::ordered_dict(
      {{"a.w", tensor_of<float>(DType::kFloat32, {1, 2}, {2})},
       {"a.b", tensor_of<float>(DType::kFloat32, {1}, {1})},
       {"extra", tensor_of<float>(DType::kFloat32, {1, 2, 3}, {3})}});
  weights.as_dict()->attributes.emplace_back(
      "_metadata",
      Value::dict({{"", 1}, {"a", 2}}));
  const Value root = Value::dict({{"state_dict", weights}});
  const Shapes model{{"fc.weight", {2}}, {"fc.bias", {1}}};
  const auto file = shapes_of(weights);
  ASSERT_TRUE(file);
  const auto match = match_by_position(*file, model);
  ASSERT_TRUE(match);
  const auto edited = rename_by_position(root, model, *match);
  ASSERT_TRUE(edited) << to_string(edited.error());
  const Dict& result = *edited->root.find("state_dict")->as_dict();
  ASSERT_EQ(result.items.size(), 2U);
  EXPECT_EQ(key_text(result.items[0].first), "fc.weight");
  EXPECT_EQ(key_text(result.items[1].first), "fc.bias");
  const Value& metadata = result.attributes.at(0).second;
  EXPECT_EQ(*metadata.find("fc")->as_int(), 2);
  EXPECT_EQ(metadata.as_dict()->items.size(), 2U);
}

TEST(RenameByPosition, RenamesKeysThatAreNoText) {
  const Value two = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  const Value one = tensor_of<float>(DType::kFloat32, {1}, {1});
  const Shapes model{{"weight", {2}}, {"bias", {1}}};
  const Value root = Value::dict({{0, two}, {1, one}});
  const auto match = match_by_position(shapes_of(root).value(), model);
  ASSERT_TRUE(match);
  const auto edited = rename_by_position(root, model, *match);
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_NE(edited->root.find("weight"), nullptr);
  EXPECT_NE(edited->root.find("bias"), nullptr);
  EXPECT_EQ(edited->root.as_dict()->items.size(), 2U);

  const Value alike = Value::dict({{0, two}, {"0", one}});
  const auto unclear = rename_by_position(
      alike,
      model,
      match_by_position(shapes_of(alike).value(), model).value());
  ASSERT_FALSE(unclear);
  EXPECT_EQ(unclear.error().detail, "E_AMBIGUOUS");
}

} // namespace
} // namespace lockstep::ckpt
