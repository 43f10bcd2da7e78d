// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

Value tensor() {
  return tensor_of<float>(DType::kFloat32, {1}, {1});
}

Value model() {
  Value weights = Value::ordered_dict(
      {{"conv.weight", tensor()},
       {"layer1.0.weight", tensor()},
       {"layer1.1.weight", tensor()},
       {"layer10.weight", tensor()}});
  weights.as_dict()->attributes.emplace_back(
      "_metadata",
      Value::dict(
          {{"", 1},
           {"conv", 1},
           {"relu", 1},
           {"layer1", 1},
           {"layer1.0", 1},
           {"layer1.1", 1},
           {"layer10", 1}}));
  return weights;
}

Value checkpoint() {
  return Value::dict(
      {{"epoch", 3},
       {"state_dict", model()},
       {"optimizer", Value::dict({{"state", 1}, {"param_groups", 2}})}});
}

Names top_keys(const Value& value) {
  Names keys;
  for (const auto& [key, item] : value.as_dict()->items) {
    keys.push_back(key_text(key));
  }
  return keys;
}

Names paths_of(const Value& weights) {
  return top_keys(weights.as_dict()->attributes.at(0).second);
}

TEST(Pick, OneEntryBecomesTheWholeFile) {
  const Value root = checkpoint();
  const auto weights = pick(root, Names{"state_dict"});
  ASSERT_TRUE(weights) << to_string(weights.error());
  EXPECT_EQ(weights->root.as_dict(), root.find("state_dict")->as_dict());
  const auto inner = pick(root, Names{"optimizer.state"});
  ASSERT_TRUE(inner);
  EXPECT_EQ(*inner->root.as_int(), 1);
}

TEST(Pick, KeepsModulesWithWhatIsBelowThem) {
  const auto picked = pick(checkpoint(), Names{"layer1", "conv"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(
      top_keys(picked->root),
      ElementsAre("conv.weight", "layer1.0.weight", "layer1.1.weight"));
  EXPECT_THAT(
      paths_of(picked->root),
      ElementsAre("", "conv", "layer1", "layer1.0", "layer1.1"));
  EXPECT_THAT(
      picked->report.changes,
      ElementsAre(KeyChange{.from = "layer10.weight"}));
}

TEST(Pick, SeveralEntriesStayACheckpoint) {
  const auto picked = pick(checkpoint(), Names{"optimizer", "state_dict"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(
      top_keys(picked->root),
      testing::UnorderedElementsAre("state_dict", "optimizer"));
  const auto mixed = pick(checkpoint(), Names{"optimizer", "conv"});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(
      mixed.error().message,
      "on another level than the other names: 'optimizer'");
}

TEST(Pick, NamesWhatIsNotThere) {
  const auto missing = pick(checkpoint(), Names{"conv", "layer"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().detail, "E_NO_KEY");
  EXPECT_THAT(missing.error().message, HasSubstr("'layer'"));
  EXPECT_EQ(
      pick(checkpoint(), Names{}).error().code,
      ErrorCode::kInvalidArgument);
}

TEST(Drop, TakesEntriesOfTheCheckpoint) {
  const Value root = checkpoint();
  const auto smaller =
      drop(root, Names{"optimizer.state", "epoch", "state_dict.conv.weight"});
  ASSERT_TRUE(smaller) << to_string(smaller.error());
  EXPECT_THAT(top_keys(smaller->root), ElementsAre("state_dict", "optimizer"));
  EXPECT_THAT(
      top_keys(*smaller->root.find("optimizer")),
      ElementsAre("param_groups"));
  EXPECT_EQ(top_keys(*smaller->root.find("state_dict")).size(), 3U);
  EXPECT_EQ(top_keys(root).size(), 3U);
  EXPECT_EQ(top_keys(*root.find("optimizer")).size(), 2U);
}

TEST(Drop, TakesModulesWithTheirMetadata) {
  const auto smaller = drop(checkpoint(), Names{"layer1", "conv.weight"});
  ASSERT_TRUE(smaller) << to_string(smaller.error());
  const Value& weights = *smaller->root.find("state_dict");
  EXPECT_THAT(top_keys(weights), ElementsAre("layer10.weight"));
  EXPECT_THAT(paths_of(weights), ElementsAre("", "relu", "layer10"));
  const auto bare = drop(model(), Names{"conv.weight"});
  ASSERT_TRUE(bare);
  EXPECT_EQ(top_keys(bare->root).size(), 3U);
  EXPECT_EQ(paths_of(bare->root).size(), 6U);
  EXPECT_EQ(drop(model(), Names{"nothing"}).error().detail, "E_NO_KEY");
}

Value part(const std::string& key) {
  Value weights = Value::ordered_dict({{key + ".weight", tensor()}});
  weights.as_dict()->attributes.emplace_back(
      "_metadata",
      Value::dict({{"", 1}, {key, 2}}));
  return weights;
}

TEST(Merge, JoinsWeightsAndMetadata) {
  const auto both = merge(part("encoder"), part("decoder"));
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_THAT(
      top_keys(both->root),
      ElementsAre("encoder.weight", "decoder.weight"));
  EXPECT_THAT(paths_of(both->root), ElementsAre("", "encoder", "decoder"));
  EXPECT_EQ(both->report.kept, 1U);
}

TEST(Merge, JoinsCheckpoints) {
  const Value a = Value::dict({{"epoch", 1}, {"state_dict", part("a")}});
  const Value b =
      Value::dict({{"epoch", 2}, {"model", part("b")}, {"note", "x"}});
  const auto both = merge(a, b);
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_THAT(top_keys(both->root), ElementsAre("epoch", "state_dict", "note"));
  EXPECT_EQ(*both->root.find("epoch")->as_int(), 1);
  EXPECT_EQ(top_keys(*both->root.find("state_dict")).size(), 2U);
}

TEST(Merge, ReplacesWhatLiesBesideTheWeights) {
  const Value a = Value::dict({{"epoch", 1}, {"state_dict", part("a")}});
  const Value b = Value::dict({{"epoch", 2}, {"state_dict", part("b")}});
  const auto both = merge(a, b, {.replace = true});
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_EQ(*both->root.find("epoch")->as_int(), 2);
  EXPECT_EQ(top_keys(*both->root.find("state_dict")).size(), 2U);
  EXPECT_THAT(both->report.replaced, ElementsAre("epoch"));
}

TEST(Merge, APlainDictTakesTheVersionsOfAStateDict) {
  const Value plain =
      Value::dict({{"first.weight", *part("a").find("a.weight")}});
  const auto both = merge(plain, part("b"));
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_FALSE(both->root.as_dict()->attributes.empty());
  EXPECT_EQ(both->root.as_dict()->kind, Dict::Kind::kOrderedDict);
}

TEST(Merge, RefusesOrReplacesWhatBothHave) {
  const Value first = part("a");
  const Value second = part("a");
  const auto refused = merge(first, second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_KEY_COLLISION");
  const auto replaced = merge(first, second, {.replace = true});
  ASSERT_TRUE(replaced);
  EXPECT_EQ(
      replaced->root.find("a.weight")->as_tensor(),
      second.find("a.weight")->as_tensor());
  const KeyReport& report = replaced->report;
  EXPECT_EQ(report.replaced.size(), first.as_dict()->items.size());
  EXPECT_EQ(report.kept, 0U);
  EXPECT_TRUE(counts_text(report).starts_with("replaced "));
  EXPECT_TRUE(to_text(report, 1).starts_with("= a."));
}

Tensor sized(std::int64_t size) {
  return tensor_of<float>(
      DType::kFloat32,
      std::vector<float>(static_cast<std::size_t>(size)),
      {size});
}

// 0 and '0' are two keys of a dict.
TEST(Merge, KeepsKeysOfTheSecondThatLookAlike) {
  const Value first = Value::dict({{"w", sized(1)}});
  const Value second = Value::dict({{0, sized(2)}, {"0", sized(3)}});
  for (const bool replace : {false, true}) {
    const auto merged = merge(first, second, {.replace = replace});
    ASSERT_TRUE(merged) << to_string(merged.error());
    EXPECT_THAT(keys_of(merged->root), ElementsAre("w", "0", "0"));
    EXPECT_EQ(merged->root.find(0)->as_tensor()->numel(), 2);
    EXPECT_EQ(merged->root.find("0")->as_tensor()->numel(), 3);
    EXPECT_EQ(merged->report.changes.size(), 2U);
  }
  const auto with_attributes = [](const Value& root) {
    return Value(Dict{
        .kind = Dict::Kind::kOrderedDict,
        .items = {{"only", sized(1)}},
        .attributes = root.as_dict()->items});
  };
  const auto merged = merge(first, with_attributes(second), {.replace = true});
  ASSERT_TRUE(merged) << to_string(merged.error());
  EXPECT_EQ(merged->root.as_dict()->attributes.size(), 2U);
}

TEST(Merge, RefusesToGuessWhichOfTwoKeysIsMeant) {
  const Value one = Value::dict({{"0", sized(1)}});
  const Value two = Value::dict({{0, sized(2)}, {"0", sized(3)}});
  for (const bool replace : {false, true}) {
    for (const auto& [first, second] :
         {std::pair(one, two), std::pair(two, one)}) {
      const auto merged = merge(first, second, {.replace = replace});
      ASSERT_FALSE(merged);
      EXPECT_EQ(merged.error().detail, "E_AMBIGUOUS");
    }
  }
}

// All pairs of bare weights and checkpoints.
TEST(Merge, NamesWhatTheResultHasNoPlaceFor) {
  const auto left_out = [](const Value& a, const Value& b, bool replace) {
    const auto merged = merge(a, b, {.replace = replace});
    EXPECT_TRUE(merged) << to_string(merged.error());
    return merged->report.left_out;
  };
  const Value bare = Value::dict({{"w", sized(1)}});
  const Value full = Value::dict(
      {{"state_dict", Value::dict({{"v", sized(1)}})},
       {"epoch", 5},
       {"opt", Value::dict({{"m", sized(4)}})}});
  const Value composer = Value::dict(
      {{"state",
        Value::dict({{"model", Value::dict({{"u", sized(1)}})}, {"step", 3}})},
       {"rng", 1}});
  Value marked =
      Value::ordered_dict({{"model", Value::dict({{"t", sized(1)}})}});
  marked.as_dict()->attributes.emplace_back("note", "x");
  for (const bool replace : {false, true}) {
    EXPECT_THAT(left_out(bare, part("b"), replace), ElementsAre());
    EXPECT_THAT(left_out(full, bare, replace), ElementsAre());
    EXPECT_THAT(left_out(bare, full, replace), ElementsAre("epoch", "opt"));
    EXPECT_THAT(
        left_out(bare, composer, replace),
        ElementsAre("state.step", "rng"));
    EXPECT_THAT(left_out(full, composer, replace), ElementsAre());
    EXPECT_THAT(
        left_out(bare, marked, replace),
        ElementsAre("<attributes>.note"));
  }
  const Value later = Value::dict(
      {{"model", Value::dict({{"b", sized(1)}})},
       {"state_dict", "a setting"},
       {"epoch", 6}});
  EXPECT_THAT(left_out(full, later, false), ElementsAre("state_dict", "epoch"));
  EXPECT_THAT(left_out(full, later, true), ElementsAre("state_dict"));
}

// The weights of both, and what lies beside them, one level down.
TEST(Merge, JoinsCheckpointsWhoseWeightsAreNested) {
  const auto file = [](const char* name, int step, const char* other) {
    return Value::dict(
        {{"state",
          Value::dict(
              {{"model", Value::dict({{name, sized(1)}})},
               {"step", step},
               {other, 1}})}});
  };
  for (const bool replace : {false, true}) {
    const auto merged =
        merge(file("a", 1, "x"), file("b", 2, "y"), {.replace = replace});
    ASSERT_TRUE(merged) << to_string(merged.error());
    const Value& state = *merged->root.find("state");
    EXPECT_THAT(keys_of(state), ElementsAre("model", "step", "x", "y"));
    EXPECT_THAT(keys_of(*state.find("model")), ElementsAre("a", "b"));
    EXPECT_EQ(*state.find("step")->as_int(), replace ? 2 : 1);
    const auto& report = merged->report;
    EXPECT_THAT(
        replace ? report.replaced : report.left_out,
        ElementsAre("state.step"));
  }
  const Value flat = Value::dict(
      {{"model", Value::dict({{"c", sized(1)}})}, {"state", "old"}});
  const auto merged = merge(flat, file("b", 2, "y"), {.replace = true});
  ASSERT_TRUE(merged) << to_string(merged.error());
  EXPECT_THAT(keys_of(*merged->root.find("state")), ElementsAre("step", "y"));
  EXPECT_THAT(keys_of(*merged->root.find("model")), ElementsAre("c", "b"));
}

TEST(Merge, TakesOtherAttributesOfTheSecond) {
  const Value first = Value::dict({{"a", tensor()}});
  Value second = Value::ordered_dict({{"b", tensor()}});
  second.as_dict()->attributes.emplace_back("ema", tensor());
  const auto merged = merge(first, second);
  ASSERT_TRUE(merged) << to_string(merged.error());
  EXPECT_TRUE(find_path(merged->root, "<attributes>.ema"));
  const auto twice = merge(
      merged->root,
      Value(Dict{
          .kind = Dict::Kind::kOrderedDict,
          .items = {{"c", tensor()}},
          .attributes = {{"ema", tensor()}}}));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().detail, "E_KEY_COLLISION");
  EXPECT_THAT(twice.error().message, HasSubstr("'<attributes>.ema'"));
}

TEST(TreeEdit, TakesAModuleWithTheKeyOfTheWeightsInFront) {
  const auto smaller = drop(checkpoint(), Names{"state_dict.layer1"});
  ASSERT_TRUE(smaller) << to_string(smaller.error());
  EXPECT_THAT(
      keys_of(*smaller->root.find("state_dict")),
      ElementsAre("conv.weight", "layer10.weight"));
  const auto picked = pick(checkpoint(), Names{"state_dict.layer1", "conv"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(
      keys_of(picked->root),
      ElementsAre("conv.weight", "layer1.0.weight", "layer1.1.weight"));
}

TEST(TreeEdit, TakesNoMoreThanTheKeysThatHaveTheName) {
  const Value root = Value::dict(
      {{"module", Value::dict({{"module.0.w", tensor()}, {"0.w", tensor()}})}});
  const auto smaller = drop(root, Names{"module.0"});
  ASSERT_TRUE(smaller) << to_string(smaller.error());
  EXPECT_THAT(keys_of(*smaller->root.find("module")), ElementsAre("0.w"));
  const auto picked = pick(root, Names{"module.0"});
  ASSERT_TRUE(picked) << to_string(picked.error());
  EXPECT_THAT(keys_of(picked->root), ElementsAre("module.0.w"));
}

// Keys that look alike: a name must not mean one of them in one command and
// the other in the next.
TEST(TreeEdit, RefusesANameThatTwoEntriesHave) {
  const Value nested =
      Value::dict({{"a", Value::dict({{"b", sized(1)}})}, {"a.b", sized(2)}});
  const Value typed = Value::dict({{"1", sized(1)}, {1, sized(2)}});
  const Value none = Value::dict({{"None", sized(1)}, {Value(), sized(2)}});
  for (const auto& [weights, name] :
       {std::pair(nested, "a.b"),
        std::pair(typed, "1"),
        std::pair(none, "None")}) {
    const Value file =
        Value::dict({{"state_dict", weights}, {"epoch", 1}, {"opt", 2}});
    const Names inner{std::string("state_dict.") + name};
    for (const auto& result :
         {pick(weights, Names{name}),
          pick(weights, Names{"x", name}),
          drop(weights, Names{name}),
          pick(file, Names{name}),
          drop(file, Names{name}),
          pick(file, inner),
          drop(file, inner)}) {
      ASSERT_FALSE(result) << name;
      EXPECT_EQ(result.error().detail, "E_AMBIGUOUS") << name;
    }
    EXPECT_EQ(find_path(weights, name).error().detail, "E_AMBIGUOUS");
    EXPECT_EQ(weights_to_edit(weights, name).error().detail, "E_AMBIGUOUS");
    EXPECT_TRUE(drop(file, Names{"epoch"}));
    EXPECT_TRUE(pick(file, Names{"state_dict"}));
  }
  EXPECT_TRUE(pick(nested, Names{"a"}));
}

} // namespace
} // namespace lockstep::ckpt
