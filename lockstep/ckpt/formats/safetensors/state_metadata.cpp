// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/state_metadata.h"

#include <set>
#include <utility>

#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"

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
  if (levels == kMaxLevels) {
    return false;
  }
  std::set<std::string_view> keys; // readers refuse one that appears twice
  json += '{';
  for (const auto& [key, value] : dict.items) {
    json += keys.empty() ? "" : ", ";
    if (!append_text(json, key.as_string()) ||
        !keys.insert(*key.as_string()).second) {
      return false;
    }
    json += ": ";
    if (!append(json, value, levels + 1) || json.size() > kMaxText) {
      return false;
    }
  }
  json += '}';
  return true;
}

bool append(std::string& json, const Value& value, int levels) {
  if (const Dict* dict = value.as_dict()) {
    return append_dict(json, *dict, levels);
  }
  if (const bool* truth = value.as_bool()) {
    json += *truth ? "true" : "false";
    return true;
  }
  if (const std::int64_t* number = value.as_int()) {
    json += std::to_string(*number);
    return *number >= 0;
  }
  if (value.is_none()) {
    json += "null";
    return true;
  }
  return append_text(json, value.as_string());
}

class MetadataReader {
 public:
  explicit MetadataReader(std::string_view text) : json_(text, {}) {}

  Result<Value> run() {
    LOCKSTEP_ASSIGN(Dict modules, dict(0));
    LOCKSTEP_TRY(json_.end());
    modules.kind = Dict::Kind::kOrderedDict; // as PyTorch makes it
    return Value(std::move(modules));
  }

 private:
  Result<Dict> dict(int levels) {
    if (levels == kMaxLevels) {
      return json_.error("nested too deeply");
    }
    Dict dict;
    LOCKSTEP_TRY(json_.members([&](const std::string& key) -> Status {
      LOCKSTEP_ASSIGN(Value entry, value(levels + 1));
      dict.items.emplace_back(key, std::move(entry));
      return {};
    }));
    return dict;
  }

  Result<Value> value(int levels) {
    if (json_.starts_with('{')) {
      LOCKSTEP_ASSIGN(Dict below, dict(levels));
      return Value(std::move(below));
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
    LOCKSTEP_ASSIGN(const std::uint64_t number, json_.unsigned_integer());
    if (!std::in_range<std::int64_t>(number)) {
      return json_.error("number too large");
    }
    return Value(static_cast<std::int64_t>(number));
  }

  JsonScanner json_;
};

} // namespace

std::optional<std::string> state_metadata_text(const Dict& metadata) {
  std::string json;
  return append_dict(json, metadata, 0) ? std::optional(std::move(json))
                                        : std::nullopt;
}

std::optional<Value> read_state_metadata(std::string_view text) {
  auto value = MetadataReader(text).run();
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

} // namespace lockstep::ckpt::internal
