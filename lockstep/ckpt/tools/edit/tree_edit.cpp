// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/tools/edit/metadata.h"
#include "lockstep/ckpt/tools/edit/rekey_dict.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

Status check_names(std::span<const std::string> names) {
  const bool bad =
      names.empty() || std::ranges::any_of(names, [](const std::string& name) {
        return name.empty();
      });
  return bad ? Status(Error{
                   .code = ErrorCode::kInvalidArgument,
                   .op = "ckpt.edit",
                   .message = "no entry is named",
                   .hint = "'lockstep ckpt FILE' and 'lockstep ckpt ls FILE' "
                           "list the names"})
             : Status();
}

// No name may mean two entries of the tree, nor two of its weights.
Status check_clear(const Value& root, std::span<const std::string> names) {
  const WeightsPlace place = locate_weights(root);
  for (const std::string& name : names) {
    LOCKSTEP_TRY(check_unambiguous(root, name));
    if (!place.key.empty()) {
      LOCKSTEP_TRY(check_unambiguous(place.value, name));
    }
  }
  return {};
}

// Of names that are met by no key among those that an edit looks at.
// `is_all`: no other name was met.
Error no_key(
    std::span<const std::string> names,
    bool is_all,
    const Value& root) {
  Error error{
      .code = ErrorCode::kNotFound,
      .op = "ckpt.edit",
      .message = format("nothing is called {}", some_names(names)),
      .hint = "'lockstep ckpt FILE' and 'lockstep ckpt ls FILE' list the names",
      .detail = "E_NO_KEY"};
  const auto wrong = std::ranges::find_if(names, [&](const std::string& name) {
    return !find_path(root, name);
  });
  const bool has_entry = std::ranges::any_of(
      names,
      [&](const std::string& name) { return root.find(name) != nullptr; });
  if (wrong == names.end() && is_all && !has_entry) {
    error.message =
        format("neither an entry nor a weight of one: {}", some_names(names));
    error.hint =
        "'lockstep ckpt FILE' lists the entries; 'lockstep ckpt extract-model' "
        "makes a state_dict of a whole model";
  } else if (wrong == names.end()) {
    error.message =
        format("on another level than the other names: {}", some_names(names));
    error.hint = "take entries, weights or modules, one kind at a time";
  } else if (const auto near = near_name(root, *wrong); !near.empty()) {
    error.hint = format("did you mean '{}'?", escape(near));
  }
  return error;
}

// The first of each name: one that is given twice means what it means once.
std::vector<std::string> once(std::span<const std::string> names) {
  std::vector<std::string> firsts;
  std::set<std::string_view> seen;
  std::ranges::copy_if(
      names,
      std::back_inserter(firsts),
      [&](const std::string& name) { return seen.insert(name).second; });
  return firsts;
}

bool has_below(const Dict& dict, std::string_view name) {
  return std::ranges::any_of(dict.items, [name](const Item& item) {
    return is_front(key_text(item.first), name);
  });
}

// The dict whose keys are asked for: the weights, or another entry of a
// checkpoint if all names say its key in front, and the first is no weight.
Result<WeightsPlace> place_of(
    const Value& root,
    std::span<const std::string> names) {
  const WeightsPlace weights = locate_weights(root);
  const Dict* keys = weights.value.as_dict();
  if (weights.key.empty() || keys == nullptr || has_below(*keys, names[0])) {
    return weights_to_edit(root);
  }
  const auto& entries = root.as_dict()->items;
  const auto entry = std::ranges::find_if(entries, [&](const Item& item) {
    return item.first.as_string() != nullptr &&
           std::ranges::all_of(names, [&](std::string_view name) {
             return is_front(name, *item.first.as_string()) &&
                    name.size() > item.first.as_string()->size() + 1;
           });
  });
  return weights_to_edit(
      root,
      entry == entries.end() ? "" : *entry->first.as_string());
}

// Which of `names` a key falls under, and which of them were met. The name of a
// key is that key alone, also where others lie below it: 'a' and 'a.b'.
class NameSet {
 public:
  // `place`: the dict whose keys are asked for. A name that none of them has
  // may say the dict's own key in front. `root`: the tree that it is in.
  // Ownership: both outlive this object.
  NameSet(
      std::span<const std::string> names,
      const Value& root,
      const WeightsPlace& place)
      : names_(names), root_(root), met_(names.size(), false) {
    std::set<std::string, std::less<>> keys;
    for (const auto& [key, value] : place.value.as_dict()->items) {
      keys.insert(key_text(key));
    }
    for (const std::string_view name : names) {
      const bool has_front = !place.key.empty() &&
                             name.size() > place.key.size() + 1 &&
                             is_front(name, place.key);
      spellings_.push_back(
          has_front && !has_below(*place.value.as_dict(), name)
              ? name.substr(place.key.size() + 1)
              : name);
      is_key_.push_back(keys.contains(spellings_.back()));
    }
  }

  bool meets(const std::string& key) {
    bool any = false;
    for (std::size_t i = 0; i < spellings_.size(); ++i) {
      if (is_key_[i] ? key == spellings_[i] : is_front(key, spellings_[i])) {
        met_[i] = true;
        any = true;
      }
    }
    return any;
  }
  [[nodiscard]] Status check_all_met() const {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!met_[i]) {
        missing.push_back(names_[i]);
      }
    }
    return missing.empty()
               ? Status()
               : Status(
                     no_key(missing, missing.size() == names_.size(), root_));
  }

 private:
  std::span<const std::string> names_;
  // As the keys say them.
  std::vector<std::string_view> spellings_;
  std::vector<bool> is_key_;
  const Value& root_;
  std::vector<bool> met_;
};

// Modules that still have a weight below them, and the root. A key of a
// thousand dots has a thousand: they are not listed.
class LivePaths {
 public:
  explicit LivePaths(const Dict& weights) {
    for (const auto& [key, value] : weights.items) {
      keys_.insert(key_text(key));
    }
  }

  [[nodiscard]] bool contains(const std::string& path) const {
    const std::string front = path + ".";
    const auto first = keys_.lower_bound(front);
    return path.empty() || (first != keys_.end() && first->starts_with(front));
  }

 private:
  std::set<std::string> keys_;
};

// Keeps or takes away weights by module; `_metadata` loses the modules whose
// weights all went.
Result<Dict>
filter(const Dict& weights, NameSet& names, bool keep, KeyReport& report) {
  LOCKSTEP_ASSIGN(
      Dict result,
      internal::rekey(
          weights,
          [&](const std::string& key) {
            return names.meets(key) == keep ? std::optional(key) : std::nullopt;
          },
          report,
          internal::OtherKeys::kFollow));
  LOCKSTEP_TRY(names.check_all_met());
  const LivePaths before(weights);
  const LivePaths after(result);
  internal::map_metadata(result, [&](const std::string& path) {
    const bool lost = before.contains(path) && !after.contains(path);
    const bool foreign =
        keep && !path.empty() && !names.meets(path) && !after.contains(path);
    return lost || foreign ? std::nullopt : std::optional(path);
  });
  return result;
}

// `value` without the entry at `path`; nothing if there is no such entry.
std::optional<Value> without(const Value& value, std::string_view path) {
  const Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < dict->items.size(); ++i) {
    const std::string name = key_text(dict->items[i].first);
    if (!is_front(path, name)) {
      continue;
    }
    Dict copy = *dict;
    const auto at = copy.items.begin() + static_cast<std::ptrdiff_t>(i);
    if (path.size() == name.size()) {
      copy.items.erase(at);
      return copy;
    }
    if (auto inner = without(at->second, path.substr(name.size() + 1))) {
      at->second = *std::move(inner);
      return copy;
    }
  }
  return std::nullopt;
}

Edited whole(Value value, const std::string& name) {
  Edited edited{.root = std::move(value)};
  edited.report.weights_key = name;
  edited.report.kept = edited.root.as_dict() == nullptr
                           ? 1
                           : edited.root.as_dict()->items.size();
  return edited;
}

// Whether `names` are entries of a checkpoint, whose weights lie in one of its
// entries, and not weights.
bool are_entries(const Value& root, std::span<const std::string> names) {
  return !locate_weights(root).key.empty() &&
         std::ranges::all_of(names, [&](const std::string& name) {
           return root.find(name) != nullptr;
         });
}

} // namespace

Result<Edited> pick(const Value& root, std::span<const std::string> asked) {
  const std::vector<std::string> names = once(asked);
  LOCKSTEP_TRY(check_names(names));
  LOCKSTEP_TRY(check_clear(root, names));
  if (names.size() == 1) {
    if (auto value = find_path(root, names[0])) {
      return whole(*std::move(value), names[0]);
    }
  }
  KeyReport report;
  if (are_entries(root, names)) {
    NameSet set(names, root, {.value = root});
    LOCKSTEP_ASSIGN(Dict kept, filter(*root.as_dict(), set, true, report));
    return Edited{.root = std::move(kept), .report = std::move(report)};
  }
  LOCKSTEP_ASSIGN(const WeightsPlace place, place_of(root, names));
  report.weights_key = place.key;
  NameSet set(names, root, place);
  LOCKSTEP_ASSIGN(Dict kept, filter(*place.value.as_dict(), set, true, report));
  return Edited{.root = std::move(kept), .report = std::move(report)};
}

Result<Edited> drop(const Value& root, std::span<const std::string> asked) {
  const std::vector<std::string> names = once(asked);
  LOCKSTEP_TRY(check_names(names));
  LOCKSTEP_TRY(check_clear(root, names));
  Edited edited{.root = root};
  std::vector<std::string> rest;
  std::vector<KeyChange> gone;
  for (const std::string& name : names) {
    const WeightsPlace place = locate_weights(edited.root);
    // An entry of the weights themselves goes the other way: `_metadata`.
    const bool is_weight = place.key.empty() && place.value.find(name);
    auto smaller = is_weight ? std::nullopt : without(edited.root, name);
    if (smaller) {
      edited.root = *std::move(smaller);
      gone.push_back({.from = name});
    } else {
      rest.push_back(name);
    }
  }
  if (!rest.empty()) {
    auto place = place_of(edited.root, rest);
    if (!place) {
      return no_key(rest, rest.size() == names.size(), edited.root);
    }
    NameSet set(rest, edited.root, *place);
    edited.report.weights_key = place->key;
    LOCKSTEP_ASSIGN(
        Dict kept,
        filter(*place->value.as_dict(), set, false, edited.report));
    edited.root = with_weights(edited.root, *place, std::move(kept));
  } else if (const Dict* dict = edited.root.as_dict()) {
    edited.report.kept = dict->items.size();
  }
  edited.report.changes.insert(
      edited.report.changes.begin(),
      gone.begin(),
      gone.end());
  return edited;
}

} // namespace lockstep::ckpt
