// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/state_metadata.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/json.h"
#include "lockstep/base/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"

namespace lockstep::ckpt::internal {
namespace {

// PyTorch's has two levels.
constexpr int kMaxLevels = 8;
// Shared dicts could expand without end.
constexpr std::size_t kMaxText = 10'000'000;

// Appends `value`; false if JSON does not give it back.
bool append(std::string& json, const Value& value, int levels);

bool append_text(std::string& json, const std::string* text) {
  if (text == nullptr || !is_utf8(*text)) {
    return false;
  }
  json += json_quote(*text);
  return true;
}

bool append_dict(std::string& json, const Dict& dict, int levels) {
  std::set<std::string_view> keys; // readers refuse one that appears twice
  json += '{';
  for (const auto& [key, value] : dict.items) {
    json += keys.empty() ? "" : ", ";
    if (!append_text(json, key.as_string()) ||
        !keys.insert(key.text()).second) {
      return false;
    }
    json += ": ";
    if (!append(json, value, levels + 1)) {
      return false;
    }
  }
  json += '}';
  return true;
}

bool append_list(std::string& json, const List& list, int levels) {
  json += '[';
  for (const Value& value : list.items) {
    json += json.back() == '[' ? "" : ", ";
    if (!append(json, value, levels + 1)) {
      return false;
    }
  }
  json += ']';
  return true;
}

bool append(std::string& json, const Value& value, int levels) {
  if (levels > kMaxLevels || json.size() > kMaxText) {
    return false;
  }
  if (const Dict* dict = value.as_dict()) {
    return dict->kind == Dict::Kind::kDict && append_dict(json, *dict, levels);
  }
  if (const List* list = value.as_list()) {
    return append_list(json, *list, levels);
  }
  if (const bool* truth = value.as_bool()) {
    json += *truth ? "true" : "false";
    return true;
  }
  if (const std::int64_t* number = value.as_int()) {
    json += std::to_string(*number);
    return true;
  }
  if (const double* number = value.as_float()) {
    json += shortest(*number);
    return std::isfinite(*number);
  }
  if (value.is_none()) {
    json += "null";
    return true;
  }
  return append_text(json, value.as_string());
}

class VersionsReader {
 public:
  explicit VersionsReader(std::string_view text) : json_(text, {}) {}

  Result<Value> run() {
    LOCKSTEP_ASSIGN(Dict modules, dict(0));
    LOCKSTEP_TRY(json_.end());
    modules.kind = Dict::Kind::kOrderedDict; // as PyTorch makes it
    return Value(std::move(modules));
  }

 private:
  Result<Dict> dict(int levels) {
    Dict dict;
    LOCKSTEP_TRY(json_.members([&](const std::string& key) -> Status {
      LOCKSTEP_ASSIGN(Value entry, value(levels + 1));
      dict.items.emplace_back(key, std::move(entry));
      return {};
    }));
    return dict;
  }

  Result<Value> list(int levels) {
    List list;
    LOCKSTEP_TRY(json_.elements([&]() -> Status {
      LOCKSTEP_ASSIGN(Value element, value(levels + 1));
      list.items.push_back(std::move(element));
      return {};
    }));
    return Value(std::move(list));
  }

  Result<Value> value(int levels) {
    if (levels > kMaxLevels) {
      return json_.error("nested too deeply");
    }
    if (json_.starts_with('{')) {
      LOCKSTEP_ASSIGN(Dict below, dict(levels));
      return Value(std::move(below));
    }
    if (json_.starts_with('[')) {
      return list(levels);
    }
    if (json_.starts_with('"')) {
      LOCKSTEP_ASSIGN(std::string text, json_.string());
      return Value(std::move(text));
    }
    if (json_.starts_with('t') || json_.starts_with('f')) {
      LOCKSTEP_ASSIGN(const bool truth, json_.boolean());
      return Value(truth);
    }
    if (json_.starts_with('n')) {
      LOCKSTEP_TRY(json_.skip_value());
      return Value(None{});
    }
    return number();
  }

  Result<Value> number() {
    LOCKSTEP_ASSIGN(const std::string_view digits, json_.number());
    if (const auto whole = parse_number<std::int64_t>(digits)) {
      return Value(*whole);
    }
    const auto real = parse_number<double>(digits);
    const bool is_float = digits.find_first_of(".eE") != digits.npos;
    if (!is_float || !real || !std::isfinite(*real)) {
      return json_.error("number too large");
    }
    return Value(*real);
  }

  JsonScanner json_;
};

} // namespace

Result<std::optional<std::string>> versions_text(
    const std::vector<FlatMetadata>& parts) {
  std::map<const Dict*, bool> is_kept; // a shared one is looked at once
  std::set<std::string> paths;
  std::optional<std::string> json;
  for (const auto& [name, metadata] : parts) {
    const auto [kept, is_new] = is_kept.emplace(metadata, false);
    if (is_new) {
      kept->second = keeps_safetensors_metadata(*metadata);
    }
    if (!kept->second) {
      continue;
    }
    json = json ? std::move(json) : "{";
    for (const auto& [key, entry] : metadata->items) {
      const std::string dot = name.empty() || key.text().empty() ? "" : ".";
      const std::string path = name + dot + std::string(key.text());
      if (!paths.insert(path).second) {
        continue; // the outer dict's own word
      }
      *json += (json->size() == 1 ? "" : ", ") + json_quote(path) + ": ";
      if (!append(*json, entry, 1)) {
        return save_error(
            ErrorCode::kInvalidArgument,
            "E_LIMIT",
            format(
                "the versions of the modules (_metadata) take more than {} "
                "bytes",
                kMaxText));
      }
    }
  }
  if (json) {
    *json += '}';
  }
  return json;
}

std::optional<Value> read_versions(std::string_view text) {
  auto value = VersionsReader(text).run();
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

bool keeps_safetensors_metadata(const Dict& metadata) {
  std::string json;
  return internal::append_dict(json, metadata, 0);
}

} // namespace lockstep::ckpt
