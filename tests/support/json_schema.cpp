// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/json_schema.h"

#include <algorithm>
#include <fstream>

#include "lockstep/base/strings.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

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

} // namespace

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

std::string schema_path(const std::string& name) {
  const std::size_t begin = std::string("lockstep.").size();
  return "docs/schemas/" + name.substr(begin, name.find('/') - begin) + ".json";
}

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

std::string violation_of_its_schema(const json& answer) {
  const auto name = answer.at("schema").get<std::string>();
  return violation(answer, read_json(schema_path(name)), name);
}

} // namespace lockstep::test
