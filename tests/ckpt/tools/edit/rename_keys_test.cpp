// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Value weights_of(const std::vector<std::string>& keys) {
  Dict dict{.kind = Dict::Kind::kOrderedDict};
  for (const std::string& key : keys) {
    dict.items.emplace_back(key, tensor_of<float>(DType::kFloat32, {1}, {1}));
  }
  return dict;
}

Value with_metadata(Value weights, const std::vector<std::string>& paths) {
  Value metadata = Value::ordered_dict({});
  for (const std::string& path : paths) {
    metadata.set(
        path,
        Value::dict({{"version", static_cast<int>(path.size())}}));
  }
  weights.as_dict()->attributes.emplace_back("_metadata", metadata);
  return weights;
}

// "path:version" of each entry.
std::vector<std::string> metadata_of(const Value& weights) {
  std::vector<std::string> entries;
  for (const auto& [path, entry] :
       weights.as_dict()->attributes.at(0).second.as_dict()->items) {
    entries.push_back(
        key_text(path) + ":" +
        std::to_string(*entry.find("version")->as_int()));
  }
  return entries;
}

std::string detail_of(const Result<Edited>& result) {
  return result ? "none" : result.error().detail;
}

TEST(StripPrefix, TakesTheWrappersPrefixOffKeysAndMetadata) {
  const Value root = with_metadata(
      weights_of({"module.conv.weight", "module.fc.bias"}),
      {"", "module", "module.conv", "module.fc"});
  const auto edited = strip_prefix(root, {});
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_THAT(keys_of(edited->root), ElementsAre("conv.weight", "fc.bias"));
  EXPECT_THAT(metadata_of(edited->root), ElementsAre(":6", "conv:11", "fc:9"));
  EXPECT_EQ(edited->report.changes.size(), 2U);
  EXPECT_THAT(
      keys_of(root),
      ElementsAre("module.conv.weight", "module.fc.bias"));
}

TEST(StripPrefix, SharesTheTensors) {
  const Value root = weights_of({"module.a"});
  const auto edited = strip_prefix(root, {});
  ASSERT_TRUE(edited);
  EXPECT_EQ(
      edited->root.find("a")->as_tensor(),
      root.find("module.a")->as_tensor());
}

TEST(StripPrefix, WorksInsideACheckpoint) {
  const Value root =
      Value::dict({{"epoch", 3}, {"state_dict", weights_of({"_orig_mod.w"})}});
  const auto edited = strip_prefix(root, {});
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_EQ(edited->report.weights_key, "state_dict");
  EXPECT_THAT(keys_of(*edited->root.find("state_dict")), ElementsAre("w"));
  EXPECT_EQ(*edited->root.find("epoch")->as_int(), 3);
}

TEST(StripPrefix, TakesTheNamedEntry) {
  const Value root = Value::dict(
      {{"state_dict", weights_of({"w"})}, {"ema", weights_of({"module.w"})}});
  const auto edited = strip_prefix(root, {.weights_key = "ema"});
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_THAT(keys_of(*edited->root.find("ema")), ElementsAre("w"));
  EXPECT_EQ(
      detail_of(strip_prefix(root, {.weights_key = "nothing"})),
      "E_NO_KEY");
}

// `k.replace('module.', '')` would break all of these.
TEST(StripPrefix, LeavesALayerCalledModuleAlone) {
  const Value mixed = weights_of({"module.weight", "head.weight"});
  const auto refused = strip_prefix(mixed, {});
  EXPECT_EQ(detail_of(refused), "E_NO_PREFIX");
  EXPECT_THAT(refused.error().message, HasSubstr("'head.weight'"));

  const Value inner = weights_of({"module.a.module.b", "module.submodule.c"});
  const auto edited = strip_prefix(inner, {});
  ASSERT_TRUE(edited);
  EXPECT_THAT(keys_of(edited->root), ElementsAre("a.module.b", "submodule.c"));
  EXPECT_EQ(
      detail_of(strip_prefix(weights_of({"a.module.b"}), {})),
      "E_NO_PREFIX");
}

TEST(StripPrefix, TakesStackedPrefixesAndSaysWhich) {
  for (const std::string prefix : {"_orig_mod.module.", "module._orig_mod."}) {
    const Value root = with_metadata(
        weights_of({prefix + "0.w", prefix + "1.b"}),
        {"", prefix.substr(0, prefix.find('.'))});
    const auto edited = strip_prefix(root, {});
    ASSERT_TRUE(edited) << to_string(edited.error());
    EXPECT_THAT(keys_of(edited->root), ElementsAre("0.w", "1.b"));
    EXPECT_EQ(edited->report.stripped, prefix);
    EXPECT_EQ(prefixes_text(edited->report), "stripped '" + prefix + "'\n");
  }
}

TEST(StripPrefix, SaysWhichPrefixIsLeft) {
  const auto edited =
      strip_prefix(weights_of({"module.module.w", "module.module.b"}), {});
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_THAT(keys_of(edited->root), ElementsAre("module.w", "module.b"));
  EXPECT_EQ(edited->report.left_prefix, "module.");
  EXPECT_THAT(
      prefixes_text(edited->report),
      AllOf(
          HasSubstr("still begin with 'module.'"),
          HasSubstr("StripOptions::prefix module.")));
  const auto outer = strip_prefix(
      weights_of({"_orig_mod.module.w"}),
      {.prefix = "_orig_mod."});
  ASSERT_TRUE(outer);
  EXPECT_THAT(keys_of(outer->root), ElementsAre("module.w"));
  EXPECT_EQ(outer->report.left_prefix, "module.");
}

TEST(StripPrefix, StripsSomeKeysOnlyIfToldTo) {
  const Value root =
      with_metadata(weights_of({"n_averaged", "module.w"}), {"", "module"});
  EXPECT_EQ(detail_of(strip_prefix(root, {})), "E_NO_PREFIX");
  const auto edited = strip_prefix(root, {.partial = true});
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_THAT(keys_of(edited->root), ElementsAre("n_averaged", "w"));
  EXPECT_THAT(metadata_of(edited->root), ElementsAre(":0"));
  EXPECT_EQ(edited->report.kept, 1U);
}

TEST(StripPrefix, RefusesToLoseAKey) {
  const Value twice = weights_of({"module.w", "w"});
  const auto collision = strip_prefix(twice, {.partial = true});
  EXPECT_EQ(detail_of(collision), "E_KEY_COLLISION");
  EXPECT_THAT(collision.error().message, HasSubstr("'module.w' and 'w'"));
  EXPECT_EQ(
      detail_of(strip_prefix(weights_of({"module."}), {})),
      "E_KEY_EMPTY");
}

TEST(StripPrefix, RefusesWhatHasNoKeys) {
  EXPECT_EQ(detail_of(strip_prefix(Value(3), {})), "E_NO_WEIGHTS");
  EXPECT_EQ(detail_of(strip_prefix(weights_of({}), {})), "E_NO_PREFIX");
  Object module{.global = "net.Net"};
  module.state =
      std::make_shared<Value>(Value::dict({{"_modules", Value::dict({})}}));
  EXPECT_EQ(detail_of(strip_prefix(Value(module), {})), "E_NO_WEIGHTS");
}

TEST(AddPrefix, IsTheInverseOfStrip) {
  const Value root = with_metadata(
      weights_of({"module.conv.weight", "module.fc.bias"}),
      {"", "module", "module.conv", "module.fc"});
  const auto bare = strip_prefix(root, {});
  ASSERT_TRUE(bare);
  const auto again = add_prefix(bare->root, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(keys_of(again->root), keys_of(root));
  // The wrapper itself is of version 1, whatever it was before.
  EXPECT_THAT(
      metadata_of(again->root),
      ElementsAre(":1", "module:6", "module.conv:11", "module.fc:9"));
}

TEST(AddPrefix, NamesEveryModuleOnTheWay) {
  const Value root = with_metadata(weights_of({"w"}), {"", "fc"});
  const auto edited = add_prefix(root, {.prefix = "a.b."});
  ASSERT_TRUE(edited);
  EXPECT_THAT(keys_of(edited->root), ElementsAre("a.b.w"));
  EXPECT_THAT(
      metadata_of(edited->root),
      ElementsAre(":1", "a:1", "a.b:0", "a.b.fc:2"));
  const auto back = strip_prefix(edited->root, {.prefix = "a.b."});
  ASSERT_TRUE(back);
  EXPECT_THAT(metadata_of(back->root), ElementsAre(":0", "fc:2"));
  EXPECT_EQ(
      add_prefix(root, {.prefix = ""}).error().code,
      ErrorCode::kInvalidArgument);
}

Result<Edited> rename(const Value& root, std::string_view rule) {
  LOCKSTEP_ASSIGN(const RenameRule parsed, RenameRule::parse(rule));
  return rename_keys(root, parsed);
}

TEST(RenameKeys, FollowsSedsRules) {
  const Value root = weights_of({"features.0.weight", "classifier.bias"});
  const auto first = rename(root, R"(s/^features\./backbone./)");
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_THAT(
      keys_of(first->root),
      ElementsAre("backbone.0.weight", "classifier.bias"));
  const auto groups = rename(root, R"(s|^(\w+)\.(\d)|\2/\1&$|)");
  ASSERT_TRUE(groups) << to_string(groups.error());
  EXPECT_EQ(keys_of(groups->root)[0], "0/featuresfeatures.0$.weight");
  const auto all = rename(root, "s/s/S/g");
  ASSERT_TRUE(all);
  EXPECT_THAT(
      keys_of(all->root),
      ElementsAre("featureS.0.weight", "claSSifier.biaS"));
}

TEST(RenameKeys, MovesMetadataWithTheModule) {
  const Value root = with_metadata(
      weights_of({"features.0.weight", "fc.weight"}),
      {"", "features", "features.0", "features.1", "fc"});
  const auto edited = rename(root, R"(s/^features\./net.body./)");
  ASSERT_TRUE(edited);
  EXPECT_THAT(
      metadata_of(edited->root),
      ElementsAre(
          ":0",
          "net.body:8",
          "net.body.0:10",
          "net.body.1:10",
          "fc:2"));
  const auto leaf = rename(root, R"(s/^fc\.weight$/head.weight/)");
  ASSERT_TRUE(leaf);
  EXPECT_EQ(metadata_of(leaf->root).back(), "head:2");
}

TEST(RenameKeys, RefusesRulesThatAreNone) {
  for (const std::string_view rule :
       {"",
        "s",
        "s/a/b",
        "s//b/",
        "y/a/b/",
        "s/a/b/i",
        "s/(/b/",
        "s/(a)/\\2/"}) {
    const auto parsed = RenameRule::parse(rule);
    ASSERT_FALSE(parsed) << rule;
    EXPECT_EQ(parsed.error().detail, "E_RENAME_RULE") << rule;
  }
  EXPECT_EQ(detail_of(rename(weights_of({"a"}), "s/x/y/")), "E_NO_MATCH");
  EXPECT_EQ(
      detail_of(rename(weights_of({"a", "b"}), "s/[ab]/c/")),
      "E_KEY_COLLISION");
}

TEST(RenameKeys, EndsOnKeysOfAnyKind) {
  const std::string longest(200'000, 'a');
  const auto renamed = rename(weights_of({longest}), "s/(a|b)*/x/");
  ASSERT_TRUE(renamed) << to_string(renamed.error());
  EXPECT_THAT(keys_of(renamed->root), ElementsAre("x"));
  const auto grown = rename(weights_of({longest}), "s/a/${1}\\&\\0&/g");
  ASSERT_TRUE(grown) << to_string(grown.error());
  EXPECT_EQ(keys_of(grown->root)[0].size(), longest.size() * 7);
  EXPECT_EQ(
      detail_of(
          rename(weights_of({std::string(64, 'a') + "b"}), "s/(a+)+$/c/")),
      "E_LIMIT");
}

// Python writes lone surrogates into keys: such a key is not text, and stays.
TEST(RenameKeys, ReplacesWholeCharacters) {
  const std::string surrogate = "\xed\xa0\x80";
  const auto edited = rename(weights_of({"\xc3\xa4", surrogate}), "s/./-/g");
  ASSERT_TRUE(edited) << to_string(edited.error());
  EXPECT_THAT(keys_of(edited->root), ElementsAre("-", surrogate));
}

} // namespace
} // namespace lockstep::ckpt
