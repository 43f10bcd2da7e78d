// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/metadata.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

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
  const Dict* old = state_metadata(weights);
  const auto item = std::ranges::find_if(
      weights.attributes,
      [old](const Item& entry) { return entry.second.as_dict() == old; });
  Dict copy = *old;
  copy.items = std::move(items);
  item->second = std::move(copy);
}

} // namespace

void map_metadata(
    Dict& weights,
    const PathMap& map,
    const std::vector<std::string>& outer) {
  const Dict* old = state_metadata(weights);
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
  const Dict* theirs = state_metadata(other);
  if (theirs == nullptr) {
    return;
  }
  const Dict* ours = state_metadata(weights);
  if (ours == nullptr) {
    weights.kind = Dict::Kind::kOrderedDict; // no other has attributes
    weights.attributes.emplace_back(Value(kStateMetadata), Value(*theirs));
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
