// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/tools/edit/metadata.h"
#include "lockstep/ckpt/tools/edit/rekey_dict.h"
#include "lockstep/ckpt/tools/edit/wrapper_prefix.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using internal::KeyMap;
using internal::PathMap;

using internal::kWrapperPrefixes;
using internal::WrapperPrefix;

struct Sharing {
  std::uint64_t have = 0;
  std::uint64_t of = 0;
  // Keys without the prefix.
  std::vector<std::string> strangers = {};

  [[nodiscard]] bool is_complete() const {
    return have == of && of != 0;
  }
};

Sharing sharing_of(const Dict& weights, std::string_view prefix) {
  Sharing sharing;
  for (const auto& [key, value] : weights.items) {
    const std::string* text = key.as_string();
    ++sharing.of;
    if (text != nullptr && text->starts_with(prefix)) {
      ++sharing.have;
    } else {
      sharing.strangers.push_back(key_text(key));
    }
  }
  return sharing;
}

// The wrapper's prefix that most keys have, stacked ones as a whole.
std::string guess_prefix(const Dict& weights) {
  std::string_view best = "module.";
  std::uint64_t most = 0;
  for (const WrapperPrefix& row : kWrapperPrefixes) {
    const std::uint64_t have = sharing_of(weights, row.prefix).have;
    if (have > most) {
      best = row.prefix;
      most = have;
    }
  }
  return std::string(best);
}

// A wrapper's prefix that all keys have; empty if there is none.
std::string shared_prefix(const Dict& weights) {
  for (const WrapperPrefix& row : kWrapperPrefixes) {
    if (sharing_of(weights, row.prefix).is_complete()) {
      return std::string(row.prefix);
    }
  }
  return "";
}

// What all keys begin with, a module's name: "model."; empty if there is none.
std::string first_part(const Dict& weights) {
  std::string part;
  for (const auto& [key, value] : weights.items) {
    const std::string* text = key.as_string();
    const std::size_t dot =
        text == nullptr ? std::string::npos : text->find('.');
    const std::string front =
        dot == std::string::npos ? "" : text->substr(0, dot + 1);
    if (front.empty() || (!part.empty() && part != front)) {
      return "";
    }
    part = front;
  }
  return part;
}

Status check_sharing(const Dict& weights, const StripOptions& options) {
  const Sharing sharing = sharing_of(weights, options.prefix);
  if (sharing.is_complete() || (options.partial && sharing.have != 0)) {
    return {};
  }
  Error error{
      .code = ErrorCode::kMismatch,
      .op = "ckpt.edit",
      .message = format(
          "{} of {} with '{}'{}{}",
          with_commas(sharing.have),
          counted(sharing.of, "key starts", "keys start"),
          escape(options.prefix),
          sharing.strangers.empty() ? "" : "; these do not: ",
          some_names(sharing.strangers)),
      .detail = "E_NO_PREFIX"};
  if (sharing.have != 0) {
    error.hint = "StripOptions::partial strips the keys that have it";
  } else if (const std::string part = first_part(weights); !part.empty()) {
    error.hint = format(
        "all of them start with '{0}': StripOptions::prefix {0}",
        escape(part));
  } else {
    error.hint = "'lockstep ckpt ls FILE' lists the keys";
  }
  return error;
}

// Paths of the modules that a prefix stands for: "a.b." gives "", "a" (the
// last one, "a.b", is the old root).
std::vector<std::string> outer_paths(std::string_view prefix) {
  std::vector<std::string> paths;
  if (!prefix.ends_with('.')) {
    return paths;
  }
  paths.emplace_back();
  for (std::size_t dot = prefix.find('.'); dot + 1 < prefix.size();
       dot = prefix.find('.', dot + 1)) {
    paths.emplace_back(prefix.substr(0, dot));
  }
  return paths;
}

Edited with_report(
    const Value& root,
    const WeightsPlace& place,
    Dict weights,
    KeyReport report) {
  report.weights_key = place.key;
  return {
      .root = with_weights(root, place, std::move(weights)),
      .report = std::move(report)};
}

PathMap strip_path(const std::string& prefix, bool partial) {
  const auto outer = outer_paths(prefix);
  const std::string inner =
      prefix.ends_with('.') ? prefix.substr(0, prefix.size() - 1) : prefix;
  return [=](const std::string& path) -> std::optional<std::string> {
    if (path == inner) {
      return std::string();
    }
    if (path.starts_with(prefix)) {
      return path.substr(prefix.size());
    }
    const bool goes = !partial && std::ranges::find(outer, path) != outer.end();
    return goes ? std::nullopt : std::optional(path);
  };
}

// Paths of modules after a rule: those of their own keys if they have any,
// else what the rule makes of "path.".
class RenamedPaths {
 public:
  RenamedPaths(const RenameRule& rule, const KeyReport& report) : rule_(rule) {
    for (const KeyChange& change : report.changes) {
      const std::size_t from = change.from.rfind('.');
      const std::size_t to = change.to.rfind('.');
      if (from == std::string::npos) {
        continue;
      }
      by_parent_.emplace(
          change.from.substr(0, from),
          to == std::string::npos ? "" : change.to.substr(0, to));
    }
  }

  [[nodiscard]] std::string operator()(const std::string& path) const {
    if (const auto found = by_parent_.find(path); found != by_parent_.end()) {
      return found->second;
    }
    const auto moved = rule_.apply(path + ".");
    return !path.empty() && moved && moved->size() > 1 && moved->ends_with('.')
               ? moved->substr(0, moved->size() - 1)
               : path;
  }

 private:
  const RenameRule& rule_;
  std::map<std::string, std::string> by_parent_;
};

} // namespace

Result<Edited> strip_prefix(const Value& root, const StripOptions& options) {
  LOCKSTEP_ASSIGN(
      const WeightsPlace place,
      weights_to_edit(root, options.weights_key));
  const Dict& weights = *place.value.as_dict();
  StripOptions used = options;
  if (used.prefix.empty()) {
    used.prefix = guess_prefix(weights);
  }
  LOCKSTEP_TRY(check_sharing(weights, used));
  const std::string& prefix = used.prefix;
  KeyReport report;
  const KeyMap map = [&prefix](const std::string& key) {
    return std::optional(
        key.starts_with(prefix) ? key.substr(prefix.size()) : key);
  };
  LOCKSTEP_ASSIGN(Dict renamed, internal::rekey(weights, map, report));
  internal::map_metadata(renamed, strip_path(prefix, used.partial));
  report.stripped = prefix;
  report.left_prefix = shared_prefix(renamed);
  return with_report(root, place, std::move(renamed), std::move(report));
}

Result<Edited> add_prefix(const Value& root, const PrefixOptions& options) {
  const std::string& prefix = options.prefix;
  if (prefix.empty()) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.edit",
        .message = "the prefix is empty",
        .hint = "that of a wrapped model is 'module.'"};
  }
  LOCKSTEP_ASSIGN(
      const WeightsPlace place,
      weights_to_edit(root, options.weights_key));
  KeyReport report;
  const KeyMap map = [&prefix](const std::string& key) {
    return std::optional(prefix + key);
  };
  LOCKSTEP_ASSIGN(
      Dict renamed,
      internal::rekey(*place.value.as_dict(), map, report));
  const bool is_module_path = prefix.ends_with('.');
  internal::map_metadata(
      renamed,
      [&](const std::string& path) -> std::optional<std::string> {
        if (path.empty()) {
          return is_module_path ? prefix.substr(0, prefix.size() - 1) : path;
        }
        return prefix + path;
      },
      outer_paths(prefix));
  return with_report(root, place, std::move(renamed), std::move(report));
}

Result<Edited> rename_keys(
    const Value& root,
    const RenameRule& rule,
    std::string_view weights_key) {
  LOCKSTEP_ASSIGN(const WeightsPlace place, weights_to_edit(root, weights_key));
  KeyReport report;
  Status failed;
  const KeyMap map = [&](const std::string& key) {
    auto renamed = rule.apply(key);
    if (!renamed && failed) {
      failed = renamed.error();
    }
    return std::optional(renamed ? *std::move(renamed) : key);
  };
  LOCKSTEP_ASSIGN(
      Dict renamed,
      internal::rekey(*place.value.as_dict(), map, report));
  LOCKSTEP_TRY(std::move(failed));
  if (report.changes.empty()) {
    return Error{
        .code = ErrorCode::kMismatch,
        .op = "ckpt.edit",
        .message = format("the rule changes none of {} keys", report.kept),
        .hint = "'lockstep ckpt ls FILE' lists the keys",
        .detail = "E_NO_MATCH"};
  }
  const RenamedPaths paths(rule, report);
  internal::map_metadata(renamed, [&paths](const std::string& path) {
    return std::optional(paths(path));
  });
  return with_report(root, place, std::move(renamed), std::move(report));
}

} // namespace lockstep::ckpt
