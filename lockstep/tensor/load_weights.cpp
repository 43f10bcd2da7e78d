// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/internal/prefix_fit.h"

namespace lockstep {
namespace {

using Keys = std::vector<std::string>;

Keys text_keys(const ckpt::Dict& weights) {
  Keys keys;
  for (const auto& [key, value] : weights.items) {
    keys.emplace_back(key.text());
  }
  return keys;
}

const ckpt::Value* attribute_of(const ckpt::Dict& dict, std::string_view name) {
  const auto found = std::ranges::find_if(
      dict.attributes,
      [&](const ckpt::Item& item) { return item.first.text() == name; });
  return found == dict.attributes.end() ? nullptr : &found->second;
}

std::string_view last_name(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

// The names that `safetensors.torch.save_model` left out, since another one
// has the same memory: its metadata says {"b.weight": "a.weight"}. Metadata may
// say other things of a tensor: only what the module calls so counts.
void add_left_out(ckpt::Dict& weights, const Keys& module_keys) {
  const ckpt::Value* metadata = attribute_of(weights, "__metadata__");
  if (metadata == nullptr || metadata->as_dict() == nullptr) {
    return;
  }
  const ckpt::Value written(weights);
  const std::size_t count = weights.items.size();
  for (const auto& [name, kept] : metadata->as_dict()->items) {
    const ckpt::Value* value = written.find(kept.text());
    if (value != nullptr && written.find(name.text()) == nullptr &&
        std::ranges::any_of(module_keys, [&](const std::string& key) {
          return last_name(key) == last_name(name.text());
        })) {
      weights.items.emplace_back(name, *value);
    }
  }
  if (weights.items.size() == count) {
    return;
  }
  const Keys fitted = fit_keys(module_keys, text_keys(weights)).keys;
  for (std::size_t i = fitted.size(); i-- > count;) {
    if (std::ranges::find(module_keys, fitted[i]) == module_keys.end() ||
        std::ranges::count(fitted, fitted[i]) > 1) {
      weights.items.erase(
          weights.items.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// The module that holds a key: "layer1.0" of "layer1.0.weight".
std::string owner_of(std::string_view key) {
  return std::string(key.substr(0, key.rfind('.') + 1));
}

// Versions of the modules that hold keys, by the modules' new names.
ckpt::Value
renamed_versions(const ckpt::Dict& versions, const Keys& from, const Keys& to) {
  std::unordered_map<std::string, std::string> owners;
  for (std::size_t i = 0; i < from.size(); ++i) {
    owners.emplace(owner_of(from[i]), owner_of(to[i]));
  }
  ckpt::Dict renamed{.kind = versions.kind};
  for (const auto& [path, version] : versions.items) {
    const std::string text(path.text());
    const auto owner = owners.find(text.empty() ? text : text + ".");
    if (owner != owners.end()) {
      std::string name = owner->second;
      name.resize(name.size() - (name.empty() ? 0 : 1));
      renamed.items.emplace_back(std::move(name), version);
    }
  }
  return renamed;
}

[[noreturn]] void
mismatch(std::string message, std::string hint, const char* detail) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "tensor.load",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = detail});
}

void rename(ckpt::Dict& weights, const Keys& from, const Keys& to) {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (const auto [first, is_new] = seen.emplace(to[i], i); !is_new) {
      mismatch(
          format(
              "'{}' and '{}' of the file are both '{}' of the module",
              escape(from[first->second]),
              escape(from[i]),
              escape(to[i])),
          "'lockstep ckpt drop' takes one of them out",
          "E_STATE_DICT");
    }
    weights.items[i].first = ckpt::Value(to[i]);
  }
  for (auto& [name, value] : weights.attributes) {
    if (name.text() == "_metadata" && value.as_dict() != nullptr) {
      value = renamed_versions(*value.as_dict(), from, to);
    }
  }
}

// "4 of 7 names were fitted: 'module.0.weight' -> '0.weight', ..."; empty if
// none was.
std::string renaming_text(const Keys& from, const Keys& to) {
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i] && count++ == 0) {
      first = format("'{}' -> '{}'", escape(from[i]), escape(to[i]));
    }
  }
  return count == 0 ? std::string()
                    : format(
                          "{} of {} were fitted: {}{}",
                          count,
                          counted(from.size(), "name", "names"),
                          first,
                          count == 1 ? "" : ", ...");
}

// "'student', 'teacher'".
std::string without_dots(Keys prefixes) {
  for (std::string& prefix : prefixes) {
    prefix.pop_back();
  }
  return "'" + escape(join(prefixes, "', '")) + "'";
}

// The names of the module in place of the file's. Returns what was done.
std::string fit(const Keys& module_keys, ckpt::Dict& weights) {
  const Keys from = text_keys(weights);
  const KeyFit fitted = fit_keys(module_keys, from);
  if (!fitted.rivals.empty()) {
    const std::string first = fitted.rivals.front();
    mismatch(
        format(
            "the file has weights for this module more than once, under {}",
            without_dots(fitted.rivals)),
        format(
            ".key = \"{}\" takes these",
            escape(first.substr(0, first.size() - 1))),
        "E_AMBIGUOUS");
  }
  if (!fitted.places.empty()) {
    mismatch(
        format(
            "the file's weights fit the module in several places: {}",
            without_dots(fitted.places)),
        format(
            "load into the part that is meant: {}",
            without_dots({fitted.places.front()})),
        "E_AMBIGUOUS");
  }
  if (fitted.keys != from) {
    rename(weights, from, fitted.keys);
  }
  return renaming_text(from, fitted.keys);
}

// What `.key` names where the file has no such entry: the front of the names
// of some weights. Nothing if there are none.
std::optional<FoundWeights> named_part(
    const ckpt::Value& root,
    const std::string& key) {
  FoundWeights found = find_state_dict(root);
  ckpt::Dict part = *found.weights.as_dict();
  std::erase_if(part.items, [&](const ckpt::Item& item) {
    return !item.first.text().starts_with(key + ".");
  });
  if (part.items.empty()) {
    return std::nullopt;
  }
  const Keys from = text_keys(part);
  Keys to = from;
  for (std::string& name : to) {
    name.erase(0, key.size() + 1);
  }
  rename(part, from, to);
  found.weights = std::move(part);
  return found;
}

FoundWeights weights_of(const ckpt::Value& root, const std::string& key) {
  if (key.empty()) {
    return find_state_dict(root);
  }
  auto entry = ckpt::find_path(root, key);
  if (entry) {
    FoundWeights found = find_state_dict(*entry);
    found.note.clear(); // it was named
    return found;
  }
  const bool is_absent = entry.error().code == ErrorCode::kNotFound;
  if (auto part = is_absent ? named_part(root, key) : std::nullopt) {
    return *std::move(part);
  }
  raise(std::move(entry).error());
}

} // namespace

LoadReport load_fitting(
    torch::nn::Module& module,
    const ckpt::Value& weights,
    const LoadWeightsOptions& options) {
  LoadStateDictOptions how{
      .strict = options.strict,
      .by_position = options.by_position,
      .first = options.first,
      .may_differ = options.may_differ,
      .may_share = true};
  const ckpt::Dict* dict = weights.as_dict();
  const bool has_names = dict != nullptr && !options.by_position &&
                         std::ranges::all_of(dict->items, [](const auto& item) {
                           return item.first.as_string() != nullptr;
                         });
  if (!has_names) {
    return load_state_dict(module, weights, how);
  }
  ckpt::Dict own = *dict;
  const Keys module_keys = state_dict(module).keys();
  add_left_out(own, module_keys);
  std::string note = fit(module_keys, own);
  LoadReport report = load_state_dict(module, ckpt::Value(std::move(own)), how);
  if (!note.empty()) {
    report.notes.push_back(std::move(note));
  }
  return report;
}

LoadReport load_weights(
    torch::nn::Module& module,
    const std::string& path,
    const LoadWeightsOptions& options,
    FileSystem& fs) {
  const Checkpoint file = load(
      path,
      {.map_location = options.map_location, .byteorder = options.byteorder},
      fs);
  return load_weights(module, file, options);
}

LoadReport load_weights(
    torch::nn::Module& module,
    const ckpt::Entry& file,
    const LoadWeightsOptions& options) {
  const FoundWeights found = weights_of(file, options.key);
  if (found.is_uncalled) {
    TORCH_WARN(escape(file.file()), " ", ckpt::kUncalledText);
  }
  LoadReport report = load_fitting(module, found.weights, options);
  if (!found.note.empty()) {
    report.notes.insert(report.notes.begin(), found.note);
  }
  return report;
}

} // namespace lockstep
