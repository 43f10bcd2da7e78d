// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of a state_dict on its way through `__metadata__`.
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

// The attributes of an empty state_dict with this `_metadata` after it was
// written and read.
Dict attributes_after(const Value& metadata) {
  MemoryFs fs;
  const Dict root{.attributes = {{"_metadata", metadata}}};
  const Status status =
      save("m.safetensors", root, {.format = "safetensors"}, fs);
  EXPECT_TRUE(status) << to_string(status.error());
  const auto file = load("m.safetensors", {}, fs);
  EXPECT_TRUE(file) << to_string(file.error());
  return {.items = file->root.as_dict()->attributes};
}

// What a format has no place for.
Result<std::vector<std::string>> lost(
    const Value& root,
    const char* name = "safetensors") {
  return format_to_write(name)->writer.lost_attributes(root);
}

Dict versioned(Value metadata, std::vector<Item> items = {}) {
  return {
      .items = std::move(items),
      .attributes = {{"_metadata", std::move(metadata)}}};
}

Value nested(int levels) {
  Value value = 1;
  for (int i = 0; i < levels; ++i) {
    value = Value::dict({{"a", value}});
  }
  return value;
}

TEST(StateMetadata, ComesBackAsItWas) {
  Value versions = Value::dict(
      {{"", Value::dict({{"version", 1}})},
       {"layer1.0.\"\xc3\xbc\"",
        Value::dict({{"version", 2}, {"on", true}, {"none", None{}}})},
       {"note", "text"},
       {"numbers",
        Value::list({-1, 0.5, -0.0, 2.0, 1e300, INT64_MIN, Value::list({})})},
       {"deep", nested(7)}});
  const Value after = attributes_after(versions);
  const Value* back = after.find("_metadata");
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->as_dict()->kind, Dict::Kind::kOrderedDict);
  Dict plain = *back->as_dict();
  plain.kind = Dict::Kind::kDict;
  EXPECT_EQ(to_text(Value(plain)), to_text(versions));
  EXPECT_EQ(after.find("__metadata__")->find("format")->text(), "pt");
}

TEST(StateMetadata, IsLeftOutIfJsonDoesNotGiveItBack) {
  const Value with_attributes =
      Dict{.items = {{"a", 1}}, .attributes = {{"extra", 1}}};
  std::string too_long;
  too_long.resize(10'000'000, 'a');
  for (const Value& value :
       {nested(9),
        Value::dict({{"a", std::numeric_limits<double>::infinity()}}),
        Value::dict({{"a", Value::tuple({})}}),
        Value::dict({{"a", Value::ordered_dict({})}}),
        Value::dict({{"a", BigInt{.bytes = std::string(9, 1)}}}),
        Value::dict({{"a", "\xff"}}),
        with_attributes,
        Value::dict({{"a", with_attributes}}),
        Value::dict({{"a", too_long}}),
        Value::dict({{1, 1}}),
        Value::dict({{"a", 1}, {"a", 2}})}) {
    const Value after = attributes_after(value);
    EXPECT_EQ(after.find("_metadata"), nullptr) << to_text(value);
    EXPECT_EQ(after.find("__metadata__")->as_dict()->items.size(), 1U);
    EXPECT_THAT(
        *lost(Value::dict({{"m", versioned(value)}})),
        testing::ElementsAre("m._metadata"));
  }
  EXPECT_THAT(*lost(versioned(nested(8))), testing::IsEmpty());
}

// Each attribute without a place is named, whatever it holds.
TEST(StateMetadata, IsNamedWithTheOtherAttributes) {
  const Value texts = Value::dict({{"a", "b"}});
  const Dict root{
      .items =
          {{"m", versioned(1, {{"w", floats({1})}})}}, // `_metadata` is no dict
      .attributes = {{"__metadata__", texts}, {"note", 1}}};
  EXPECT_THAT(*lost(root), testing::ElementsAre("note", "m._metadata"));
  for (const char* name : {"npz", "dcp", "libtorch"}) {
    EXPECT_THAT(
        *lost(root, name),
        testing::ElementsAre("__metadata__", "note", "m._metadata"))
        << name;
  }
  EXPECT_THAT(
      *lost(Value::dict({{"m", root}})),
      testing::ElementsAre("m.__metadata__", "m.note", "m.m._metadata"));
}

// The file with both as one level of names.
Result<Checkpoint> flat_file(const Value& root) {
  MemoryFs fs;
  LOCKSTEP_TRY(save("m.safetensors", root, {.format = "safetensors"}, fs));
  return load("m.safetensors", {}, fs);
}

TEST(StateMetadata, OfNestedDictsFollowsTheNames) {
  const auto weights = [](int version, const char* module) {
    return Dict{
        .items = {{"w", floats({1})}},
        .attributes = {
            {"_metadata",
             Value::dict(
                 {{"", Value::dict({{"version", version}})},
                  {module, Value::dict({{"version", version}})}})}}};
  };
  Dict root = weights(1, "list.0");
  root.items.emplace_back("list", Value::list({weights(2, "fc")}));
  const auto file = flat_file(root);
  ASSERT_TRUE(file) << to_string(file.error());
  const Dict* metadata = state_metadata(*file->root.as_dict());
  ASSERT_NE(metadata, nullptr);
  EXPECT_THAT(
      keys_of(*metadata),
      testing::ElementsAre("", "list.0", "list.0.fc"));
  EXPECT_EQ(*metadata->items[1].second.find("version")->as_int(), 1);
  EXPECT_EQ(*metadata->items[2].second.find("version")->as_int(), 2);
}

TEST(StateMetadata, IsNotAnEntryOfThatName) {
  const Value text = R"({"": {"version": 1}})";
  const auto file = flat_file(Value::dict({{"_metadata", text}}));
  ASSERT_TRUE(file) << to_string(file.error());
  const Dict& root = *file->root.as_dict();
  EXPECT_EQ(state_metadata(root), nullptr);
  EXPECT_EQ(
      root.attributes.at(0).second.find("_metadata")->text(),
      text.text());
  const auto refused =
      flat_file(Value::dict({{"torch", Value::dict({{"_metadata", text}})}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_NAME");
}

// A module that both dicts name has one entry: the outer dict's.
TEST(StateMetadata, SaysWhichWordOfTwoIsLeftOut) {
  const auto version = [](int number) {
    return Value::dict({{"version", number}});
  };
  const auto root = [&](int inner) {
    return versioned(
        Value::dict({{"", version(1)}, {"m", version(2)}}),
        {{"m",
          versioned(Value::dict({{"", version(inner)}, {"fc", version(1)}}))}});
  };
  EXPECT_THAT(*lost(root(2)), testing::IsEmpty());
  EXPECT_THAT(*lost(root(3)), testing::ElementsAre("m._metadata"));
  const auto file = flat_file(root(3));
  ASSERT_TRUE(file) << to_string(file.error());
  const Dict* metadata = state_metadata(*file->root.as_dict());
  ASSERT_NE(metadata, nullptr);
  EXPECT_THAT(keys_of(*metadata), testing::ElementsAre("", "m", "m.fc"));
  EXPECT_EQ(*metadata->items[1].second.find("version")->as_int(), 2);
}

TEST(StateMetadata, RefusesANameThatIsNoText) {
  const Value root =
      Value::dict({{"\xff", versioned(Value::dict({{"", nested(1)}}))}});
  const auto refused = flat_file(root);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_NAME");
  EXPECT_EQ(lost(root).error().detail, "E_NAME");
}

TEST(StateMetadata, LeavesOutWhatDoesNotFit) {
  const Value text = std::string(1'000'000, 'a');
  List list;
  list.items.resize(11, Value(versioned(Value::dict({{"a", text}}))));
  EXPECT_THAT(*lost(list), testing::ElementsAre("9._metadata", "10._metadata"));
  const auto file = flat_file(list);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(state_metadata(*file->root.as_dict())->items.size(), 9U);
}

// A small file whose dicts share one `_metadata`.
TEST(StateMetadata, HasALimit) {
  Dict metadata;
  for (int i = 0; i < 10'000; ++i) {
    metadata.items.emplace_back(std::to_string(i), Value::dict({}));
  }
  const Value shared = std::move(metadata);
  List list;
  for (int i = 0; i < 2'000; ++i) {
    list.items.emplace_back(versioned(shared));
  }
  const auto refused = flat_file(list);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
  EXPECT_EQ(lost(list).error().detail, "E_LIMIT");

  // Keys 1 and "1" lead to it under one name.
  Value doubled = versioned(shared);
  for (int i = 0; i < 14; ++i) {
    doubled = Value::dict({{1, doubled}, {"1", doubled}});
  }
  EXPECT_THAT(*lost(doubled), testing::IsEmpty());
}

TEST(StateMetadata, IsLookedForWithinLimits) {
  Dict below;
  for (int i = 0; i < 10'000; ++i) {
    below.items.emplace_back(std::to_string(i), Value::dict({}));
  }
  const Value wide = Value::dict({{std::string(100'000, 'k'), below}});
  Value deep = 1;
  for (int i = 0; i < 3'000; ++i) {
    deep = Value::dict({{"d", deep}});
  }
  for (const char* format : {"safetensors", "npz", "dcp", "libtorch"}) {
    EXPECT_EQ(lost(wide, format).error().detail, "E_LIMIT") << format;
    EXPECT_EQ(lost(deep, format).error().detail, "E_DEPTH") << format;
  }
}

TEST(StateMetadata, IsNotMadeOfOtherText) {
  for (const char* text :
       {"",
        "1",
        "[]",
        "{} {}",
        R"({"a":1,"a":2})",
        R"({"a":01})",
        R"({"a":1e999})",
        R"({"a":9223372036854775808})",
        R"({"a":[})",
        R"({"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}})"}) {
    const std::string bytes = safetensors(
        R"({"__metadata__":{"torch._metadata":)" + json_quote(text) + "}}");
    const auto file = load_bytes(bytes);
    ASSERT_TRUE(file) << to_string(file.error());
    const auto& attributes = file->root.as_dict()->attributes;
    ASSERT_EQ(attributes.size(), 1U) << text;
    EXPECT_EQ(attributes[0].second.find("torch._metadata")->text(), text);
  }
}

} // namespace
} // namespace lockstep::ckpt
