// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` of a state_dict on its way through `__metadata__`.
#include <gmock/gmock.h>

#include "lockstep/base/json.h"
#include "lockstep/base/memory_fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
#include "tests/ckpt/formats/safetensors/safetensors_fixture.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

// The attributes of an empty state_dict with this `_metadata` after it was
// written and read.
Dict attributes_after(const Value& metadata) {
  MemoryFs fs;
  const Dict root{
      .kind = Dict::Kind::kOrderedDict,
      .attributes = {{"_metadata", metadata}}};
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

TEST(StateMetadata, IsOnlyTextIfJsonDoesNotGiveItBack) {
  for (const Value& value :
       {nested(9),
        Value::dict({{"a", -1}}),
        Value::dict({{"a", 0.5}}),
        Value::dict({{"a", Value::list({})}}),
        Value::dict({{1, 1}}),
        Value::dict({{"a", 1}, {"a", 2}})}) {
    const Value after = attributes_after(value);
    EXPECT_EQ(after.find("_metadata"), nullptr);
    EXPECT_EQ(
        after.find("__metadata__")->find("_metadata")->text(),
        to_text(value));
  }
}

TEST(StateMetadata, IsNotMadeOfOtherText) {
  for (const char* text :
       {"",
        "1",
        "[]",
        "{} {}",
        R"({"a":1,"a":2})",
        R"({"a":-1})",
        R"({"a":9223372036854775808})",
        R"({"a":[]})",
        R"({"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}})"}) {
    const std::string bytes = safetensors(
        R"({"__metadata__":{"_metadata":)" + json_quote(text) + "}}");
    const auto file = load_bytes(bytes);
    ASSERT_TRUE(file) << to_string(file.error());
    const auto& attributes = file->root.as_dict()->attributes;
    ASSERT_EQ(attributes.size(), 1U) << text;
    EXPECT_EQ(attributes[0].second.find("_metadata")->text(), text);
  }
}

} // namespace
} // namespace lockstep::ckpt
