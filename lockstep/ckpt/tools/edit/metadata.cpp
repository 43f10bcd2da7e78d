// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/metadata.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kName = "_metadata";

bool is_metadata(const Item& item) {
  const std::string* name = item.first.as_string();
  return name != nullptr && *name == kName && item.second.as_dict() != nullptr;
}

// {'version': 1}, with the string object that the other entries share.
Value version_one(const Dict& metadata) {
  for (const auto& [path, entry] : metadata.items) {
    const Dict* dict = entry.as_dict();
    if (dict == nullptr || dict->items.empty()) {
      continue;
    }
    const Value& key = dict->items.front().first;
    if (key.as_string() != nullptr && *key.as_string() == "version") {
      return Dict{.items = {{key, 1}}};
    }
  }
  return Value::dict({{"version", 1}});
}

class Entries {
 public:
  void add(Value path, const Value& entry) {
    const std::string* text = path.as_string();
    if (text == nullptr || seen_.insert(*text).second) {
      items_.emplace_back(std::move(path), entry);
    }
  }
  std::vector<Item> take() {
    return std::move(items_);
  }

 private:
  std::vector<Item> items_;
  std::set<std::string> seen_;
};

void replace(Dict& weights, std::vector<Item> items) {
  for (Item& item : weights.attributes) {
    if (is_metadata(item)) {
      Dict copy = *item.second.as_dict();
      copy.items = std::move(items);
      item.second = std::move(copy);
      return;
    }
  }
}

} // namespace

const Dict* metadata_of(const Dict& weights) {
  const auto found = std::ranges::find_if(weights.attributes, is_metadata);
  return found == weights.attributes.end() ? nullptr : found->second.as_dict();
}

void map_metadata(
    Dict& weights,
    const PathMap& map,
    const std::vector<std::string>& outer) {
  const Dict* old = metadata_of(weights);
  if (old == nullptr) {
    return;
  }
  Entries entries;
  for (const std::string& path : outer) {
    entries.add(path, version_one(*old));
  }
  for (const auto& [path, entry] : old->items) {
    const std::string* text = path.as_string();
    if (text == nullptr) {
      entries.add(path, entry);
      continue;
    }
    if (const auto moved = map(*text)) {
      entries.add(*moved == *text ? path : Value(*moved), entry);
    }
  }
  replace(weights, entries.take());
}

void merge_metadata(Dict& weights, const Dict& other) {
  const Dict* theirs = metadata_of(other);
  if (theirs == nullptr) {
    return;
  }
  const Dict* ours = metadata_of(weights);
  if (ours == nullptr) {
    weights.attributes.emplace_back(Value(kName), Value(*theirs));
    return;
  }
  Entries entries;
  for (const Dict* side : {ours, theirs}) {
    for (const auto& [path, entry] : side->items) {
      entries.add(path, entry);
    }
  }
  replace(weights, entries.take());
}

} // namespace lockstep::ckpt::internal
