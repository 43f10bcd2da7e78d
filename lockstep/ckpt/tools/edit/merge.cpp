// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/tools/edit/metadata.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

Error collisions(const std::vector<std::string>& names) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.edit",
      .message = format(
          "both files have {}: {}",
          counted(names.size(), "key"),
          some_names(names)),
      .hint = "MergeOptions::replace takes the second file's values",
      .detail = "E_KEY_COLLISION"};
}

// The entries of the first file by the text of their keys.
class Places {
 public:
  explicit Places(const std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto [place, is_new] =
          places_.emplace(key_text(items[i].first), Place{.index = i});
      place->second.is_taken = !is_new;
    }
  }

  // Where an entry of the second file has its counterpart. Errors: a text that
  // both have and one of them twice, as 1 and '1': which takes which place?
  Result<std::optional<std::size_t>> take(const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) {
      return std::optional<std::size_t>();
    }
    if (std::exchange(found->second.is_taken, true)) {
      return Error{
          .code = ErrorCode::kInvalidArgument,
          .op = "ckpt.edit",
          .message = format(
              "both files have '{0}', and one of them has two keys that look "
              "like '{0}'",
              escape(name)),
          .hint = "rename one of the keys first",
          .detail = "E_AMBIGUOUS"};
    }
    return std::optional(found->second.index);
  }

 private:
  struct Place {
    std::size_t index = 0;
    // A second key looks like it, or another entry was put there.
    bool is_taken = false;
  };
  std::map<std::string, Place> places_;
};

Status merge_items(
    Dict& result,
    const Dict& second,
    const MergeOptions& options,
    KeyReport& report) {
  Places places(result.items);
  std::vector<std::string> in_both;
  for (const auto& [key, value] : second.items) {
    const std::string name = key_text(key);
    LOCKSTEP_ASSIGN(const auto place, places.take(name));
    if (!place) {
      result.items.emplace_back(key, value);
      report.changes.push_back({.to = name});
    } else if (options.replace) {
      result.items[*place].second = value;
      report.replaced.push_back(name);
    } else {
      in_both.push_back(name);
    }
  }
  return in_both.empty() ? Status() : Status(collisions(in_both));
}

// Python attributes other than `_metadata`.
Status merge_attributes(
    Dict& result,
    const Dict& second,
    const MergeOptions& options) {
  Places places(result.attributes);
  std::vector<std::string> in_both;
  for (const auto& [key, value] : second.attributes) {
    const std::string name = key_text(key);
    if (name == kStateMetadata) {
      continue;
    }
    LOCKSTEP_ASSIGN(const auto place, places.take(name));
    if (!place) {
      result.kind = Dict::Kind::kOrderedDict; // a plain dict has none
      result.attributes.emplace_back(key, value);
    } else if (options.replace) {
      result.attributes[*place].second = value;
    } else {
      in_both.push_back("<attributes>." + name);
    }
  }
  return in_both.empty() ? Status() : Status(collisions(in_both));
}

// Where the weights lie in a dict: an entry of it or of one of its entries.
struct KeyInside {
  std::string_view key = {};
  bool is_own = false;

  KeyInside(const Dict& dict, std::string_view weights)
      : key(weights),
        is_own(std::ranges::any_of(dict.items, [&](const Item& item) {
          return item.first.text() == weights;
        })) {}

  // "model" of "state.model" in the entry "state"; else empty.
  [[nodiscard]] std::string_view in(std::string_view name) const {
    return !is_own && key.size() > name.size() && key.starts_with(name) &&
                   key[name.size()] == '.'
               ? key.substr(name.size() + 1)
               : std::string_view();
  }
};

// Joins what lies beside the weights of two checkpoints.
class Others {
 public:
  Others(const MergeOptions& options, KeyReport& report)
      : options_(options), report_(report) {}

  // The weights are `a_key` of `result` and `b_key` of `second`; empty: in
  // another entry. `front`: of the names.
  Status join(
      Dict& result,
      const Dict& second,
      std::string_view a_key,
      std::string_view b_key,
      const std::string& front = {}) {
    Places places(result.items);
    const KeyInside a(result, a_key);
    const KeyInside b(second, b_key);
    for (const auto& [key, value] : second.items) {
      const std::string name = key_text(key);
      const Value rest = without(value, b.in(name));
      if (name == b_key || (child_count(rest) == 0 && child_count(value) > 0)) {
        continue; // the weights, or nothing beside them
      }
      LOCKSTEP_ASSIGN(const auto place, places.take(name));
      if (!place) {
        result.items.emplace_back(key, rest);
        report_.changes.push_back({.to = front + name});
        continue;
      }
      Value& old = result.items[*place].second;
      const std::string_view inner = a.in(name);
      if (!inner.empty() && rest.as_dict() != nullptr) {
        Dict joined = *old.as_dict();
        LOCKSTEP_TRY(
            join(joined, *rest.as_dict(), inner, "", front + name + "."));
        old = std::move(joined);
      } else if (options_.replace && inner.empty() && name != a_key) {
        old = rest;
        report_.replaced.push_back(front + name);
      } else {
        report_.left_out.push_back(front + name);
      }
    }
    return {};
  }

  // Those of `second`, which has no place in the result.
  void
  leave(const Dict& second, std::string_view b_key, const std::string& front) {
    const KeyInside b(second, b_key);
    for (const auto& [key, value] : second.items) {
      const std::string name = key_text(key);
      const std::string_view inner = b.in(name);
      if (!inner.empty() && value.as_dict() != nullptr) {
        leave(*value.as_dict(), inner, front + name + ".");
      } else if (name != b_key) {
        report_.left_out.push_back(front + name);
      }
    }
  }

 private:
  // An entry of the second file without its weights.
  static Value without(const Value& value, std::string_view key) {
    if (key.empty() || value.as_dict() == nullptr) {
      return value;
    }
    Dict copy = *value.as_dict();
    std::erase_if(copy.items, [key](const Item& item) {
      return item.first.text() == key;
    });
    return copy;
  }

  const MergeOptions& options_;
  KeyReport& report_;
};

} // namespace

Result<Edited>
merge(const Value& first, const Value& second, const MergeOptions& options) {
  LOCKSTEP_ASSIGN(const WeightsPlace a, weights_to_edit(first));
  LOCKSTEP_ASSIGN(const WeightsPlace b, weights_to_edit(second));
  KeyReport report{.weights_key = a.key};
  Dict weights = *a.value.as_dict();
  const std::size_t before = weights.items.size();
  LOCKSTEP_TRY(merge_items(weights, *b.value.as_dict(), options, report));
  report.kept = before - report.replaced.size();
  internal::merge_metadata(weights, *b.value.as_dict());
  LOCKSTEP_TRY(merge_attributes(weights, *b.value.as_dict(), options));
  Value root = with_weights(first, a, std::move(weights));
  if (!b.key.empty()) {
    const Dict& rest = *second.as_dict();
    Others others(options, report);
    if (a.key.empty() || options.weights_only) {
      others.leave(rest, b.key, "");
    } else {
      Dict whole = *root.as_dict();
      LOCKSTEP_TRY(others.join(whole, rest, a.key, b.key));
      root = std::move(whole);
    }
    for (const auto& [key, value] : rest.attributes) {
      report.left_out.push_back("<attributes>." + key_text(key));
    }
  }
  return Edited{.root = std::move(root), .report = std::move(report)};
}

} // namespace lockstep::ckpt
