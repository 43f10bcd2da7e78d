// SPDX-License-Identifier: BSD-3-Clause
//
// JSON of the golden sessions against docs/schemas: the part of JSON Schema
// that those files use.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

bool has_type(const json& value, const std::string& type) {
  return (type == "object" && value.is_object()) ||
         (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) ||
         (type == "integer" && value.is_number_integer()) ||
         (type == "number" && value.is_number()) ||
         (type == "boolean" && value.is_boolean()) ||
         (type == "null" && value.is_null());
}

bool has_any_type(const json& value, const json& types) {
  if (types.is_string()) {
    return has_type(value, types.get<std::string>());
  }
  return std::any_of(types.begin(), types.end(), [&value](const json& type) {
    return has_type(value, type.get<std::string>());
  });
}

// The first place where `value` breaks `schema`; "" if none does.
std::string
violation(const json& value, const json& schema, const std::string& where) {
  if (schema.contains("type") && !has_any_type(value, schema["type"])) {
    return where + " has another type than " + schema["type"].dump();
  }
  if (schema.contains("const") && value != schema["const"]) {
    return where + " is not " + schema["const"].dump();
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) ==
          schema["enum"].end()) {
    return where + " is none of " + schema["enum"].dump();
  }
  const json required = schema.value("required", json::array());
  for (const json& key : required) {
    if (value.is_object() && !value.contains(key.get<std::string>())) {
      return where + " lacks " + key.dump();
    }
  }
  const json known = schema.value("properties", json::object());
  const json members = value.is_object() ? value : json::object();
  for (const auto& [key, item] : members.items()) {
    if (known.contains(key)) {
      auto inner = violation(item, known[key], format("{}.{}", where, key));
      if (!inner.empty()) {
        return inner;
      }
    } else if (schema.value("additionalProperties", json()) == json(false)) {
      return format("{} has an unknown member {}", where, key);
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (const json& item : value) {
      auto inner = violation(item, schema["items"], where + "[]");
      if (!inner.empty()) {
        return inner;
      }
    }
  }
  return "";
}

// "lockstep.ckpt.ls/1" -> docs/schemas/ckpt.ls.json
std::string schema_path(const std::string& name) {
  const std::size_t begin = std::string("lockstep.").size();
  return "docs/schemas/" + name.substr(begin, name.find('/') - begin) + ".json";
}

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// Every line of the sessions that is an answer in JSON.
std::vector<json> answers() {
  std::vector<json> found;
  for (const auto& entry : fs::directory_iterator("tests/cli/golden")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(R"({"schema":"lockstep.ckpt.)") ||
          line.starts_with(R"({"schema":"lockstep.explain)")) {
        found.push_back(json::parse(line));
      }
    }
  }
  return found;
}

TEST(Schemas, FitEveryAnswerOfTheSessions) {
  std::set<std::string> seen;
  for (const json& answer : answers()) {
    const std::string name = answer["schema"].get<std::string>();
    const std::string path = schema_path(name);
    ASSERT_TRUE(fs::exists(path)) << path;
    EXPECT_EQ(violation(answer, read_json(path), name), "");
    seen.insert(path);
  }
  for (const auto& entry : fs::directory_iterator("docs/schemas")) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with("ckpt.")) {
      EXPECT_TRUE(seen.contains(path)) << path << " fits no answer";
    }
  }
  EXPECT_GE(seen.size(), 20U);
}

TEST(Schemas, AreWhatTheyAreCalled) {
  for (const auto& entry : fs::directory_iterator("docs/schemas")) {
    const json schema = read_json(entry.path().string());
    EXPECT_EQ(
        schema_path(schema["$id"].get<std::string>()),
        entry.path().string());
  }
}

TEST(Schemas, NoticeWhatIsWrong) {
  const json schema = read_json("docs/schemas/ckpt.digest.json");
  json answer = json::parse(
      R"({"schema":"lockstep.ckpt.digest/1","ok":true,
          "result":{"digest":"ab","short":"a","tensors":1}})");
  EXPECT_EQ(violation(answer, schema, "x"), "");
  answer["result"]["tensors"] = "1";
  EXPECT_NE(violation(answer, schema, "x"), "");
  answer["result"].erase("tensors");
  EXPECT_NE(violation(answer, schema, "x"), "");
  answer["result"] = {
      {"digest", "ab"},
      {"short", "a"},
      {"tensors", 1},
      {"more", 2}};
  EXPECT_NE(violation(answer, schema, "x"), "");
}

} // namespace
} // namespace lockstep
