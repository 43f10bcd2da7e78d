// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/state_metadata.h"

#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/json.h"
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
// Entries of all dicts, as a walk counts values.
constexpr std::uint64_t kMaxEntries = kWriteBounds.max_visits;

// Appends `value`; false if JSON does not give it back.
bool append(std::string& json, const Value& value, int levels);

bool append_text(std::string& json, const std::string* text) {
  if (text == nullptr || text->size() > kMaxText || !is_utf8(*text)) {
    return false;
  }
  json += json_quote(*text);
  return json.size() <= kMaxText;
}

bool append_dict(std::string& json, const Dict& dict, int levels) {
  if (!dict.attributes.empty()) {
    return false;
  }
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
  if (value.type() == Value::Type::kFloat) {
    json += shortest(*value.as_float());
    return std::isfinite(*value.as_float());
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
    LOCKSTEP_TRY(json_.members([&](std::string_view key) -> Status {
      LOCKSTEP_ASSIGN(Value entry, value(levels + 1));
      dict.items.emplace_back(std::string(key), std::move(entry));
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

// Puts the parts together. Of two entries for one module, the outer dict's is
// written.
class VersionsPlanner {
 public:
  Status add(const FlatMetadata& part) {
    if (!parts_.emplace(part.name, part.metadata).second) {
      return {}; // what is shared, under one name: keys 1 and "1"
    }
    LOCKSTEP_ASSIGN(const Texts* const texts, texts_of(*part.metadata));
    LOCKSTEP_ASSIGN(
        const bool is_whole,
        texts == nullptr ? Result(false) : add_entries(part, *texts));
    if (!is_whole) {
      plan_.lost.push_back(attribute_name(part.name, kStateMetadata));
    }
    return {};
  }

  Versions take() {
    if (plan_.text) {
      *plan_.text += '}';
    }
    return std::move(plan_);
  }

 private:
  // JSON of each entry.
  using Texts = std::vector<std::string>;

  // Null if JSON does not give all back. Ownership: this object's; a dict that
  // is shared is looked at once.
  Result<const Texts*> texts_of(const Dict& metadata) {
    const auto [known, is_new] = texts_.try_emplace(&metadata);
    std::optional<Texts>& texts = known->second;
    if (is_new) {
      std::string json;
      const bool is_kept = append_dict(json, metadata, 0);
      LOCKSTEP_TRY(count(json.size()));
      if (is_kept) {
        texts.emplace();
        for (const auto& [key, entry] : metadata.items) {
          append(texts->emplace_back(), entry, 1);
        }
      }
    }
    return texts ? &*texts : nullptr;
  }

  // False if not all of them are written.
  Result<bool> add_entries(const FlatMetadata& part, const Texts& texts) {
    std::string json;
    std::vector<std::pair<std::string, const std::string*>> fresh;
    bool is_whole = true;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string_view key = part.metadata->items[i].first.text();
      const std::string dot = part.name.empty() || key.empty() ? "" : ".";
      std::string path = part.name + dot + std::string(key);
      LOCKSTEP_TRY(count(path.size() + texts[i].size()));
      if (!is_utf8(path)) {
        return save_error(
            ErrorCode::kInvalidArgument,
            "E_NAME",
            format(
                "'{}' cannot be a name in a safetensors file",
                escape(path)));
      }
      if (const auto outer = written_.find(path); outer != written_.end()) {
        is_whole = is_whole && *outer->second == texts[i];
        continue;
      }
      json += format(
          "{}{}: {}",
          json.empty() ? "" : ", ",
          json_quote(path),
          texts[i]);
      fresh.emplace_back(std::move(path), &texts[i]);
      if (json.size() > kMaxText) {
        return false;
      }
    }
    return write(json, std::move(fresh)) && is_whole;
  }

  bool write(
      const std::string& json,
      std::vector<std::pair<std::string, const std::string*>> entries) {
    const std::size_t before = plan_.text ? plan_.text->size() : 0;
    if (before + json.size() > kMaxText) {
      return false;
    }
    if (!plan_.text) {
      plan_.text = "{";
    }
    *plan_.text += before > 1 && !json.empty() ? ", " : "";
    *plan_.text += json;
    written_.insert(
        std::make_move_iterator(entries.begin()),
        std::make_move_iterator(entries.end()));
    return true;
  }

  Status count(std::size_t bytes) {
    entries_ += 1 + bytes / kVisitBytes;
    return entries_ <= kMaxEntries
               ? Status()
               : Status(save_error(
                     ErrorCode::kUnsafe,
                     "E_LIMIT",
                     "the versions of the modules (_metadata), where dicts "
                     "share them, expand to too many entries"));
  }

  Versions plan_;
  std::set<std::pair<std::string, const Dict*>> parts_;
  std::map<const Dict*, std::optional<Texts>> texts_;
  // The JSON of each module's entry in `plan_`, which lies in `texts_`.
  std::map<std::string, const std::string*, std::less<>> written_;
  std::uint64_t entries_ = 0;
};

} // namespace

Result<Versions> plan_versions(const std::vector<FlatMetadata>& parts) {
  VersionsPlanner planner;
  for (const FlatMetadata& part : parts) {
    LOCKSTEP_TRY(planner.add(part));
  }
  return planner.take();
}

std::optional<Value> read_versions(std::string_view text) {
  auto value = VersionsReader(text).run();
  return value ? std::optional(*std::move(value)) : std::nullopt;
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

Result<std::vector<std::string>> lost_safetensors_attributes(
    const Value& root) {
  LOCKSTEP_ASSIGN(const auto attributes, attributes_in(root));
  std::vector<FlatMetadata> parts;
  std::vector<std::string> others;
  for (const FlatAttribute& attribute : attributes) {
    const auto& [key, value] = *attribute.item;
    const Dict* dict = value.as_dict();
    if (dict != nullptr && key.text() == kStateMetadata) {
      parts.push_back({.name = attribute.dict, .metadata = dict});
    } else if (
        dict == nullptr || key_text(key) != kSafetensorsMetadata ||
        attribute.owner != root.as_dict()) {
      others.push_back(attribute_name(attribute.dict, key));
    }
  }
  LOCKSTEP_ASSIGN(internal::Versions versions, internal::plan_versions(parts));
  versions.lost.insert(versions.lost.end(), others.begin(), others.end());
  return std::move(versions.lost);
}

} // namespace lockstep::ckpt
