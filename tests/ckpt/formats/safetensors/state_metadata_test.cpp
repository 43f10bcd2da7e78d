// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of a state_dict on its way through `__metadata__`.
#include <limits>

#include <gmock/gmock.h>

#include "lockstep/base/json.h"
#include "lockstep/base/memory_fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/value_fixture.h"

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
  const FormatWriter& writer = format_to_write("safetensors")->writer;
  for (const Value& value :
       {nested(9),
        Value::dict({{"a", std::numeric_limits<double>::infinity()}}),
        Value::dict({{"a", Value::tuple({})}}),
        Value::dict({{"a", Value::ordered_dict({})}}),
        Value::dict({{"a", BigInt{.bytes = std::string(9, 1)}}}),
        Value::dict({{"a", "\xff"}}),
        Value::dict({{1, 1}}),
        Value::dict({{"a", 1}, {"a", 2}})}) {
    const Value after = attributes_after(value);
    EXPECT_EQ(after.find("_metadata"), nullptr) << to_text(value);
    EXPECT_EQ(after.find("__metadata__")->as_dict()->items.size(), 1U);
    const Dict weights{.attributes = {{"_metadata", value}}};
    EXPECT_THAT(
        lost_metadata(Value::dict({{"m", weights}}), writer),
        testing::ElementsAre("m._metadata"));
  }
  EXPECT_THAT(
      lost_metadata(Dict{.attributes = {{"_metadata", nested(8)}}}, writer),
      testing::IsEmpty());
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

TEST(StateMetadata, HasALimit) {
  const Value text = std::string(1'000'000, 'a');
  const Dict weights{.attributes = {{"_metadata", Value::dict({{"a", text}})}}};
  List list;
  list.items.resize(11, Value(weights));
  const auto refused = flat_file(list);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_LIMIT");
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
