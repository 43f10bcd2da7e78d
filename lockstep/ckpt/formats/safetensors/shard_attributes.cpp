// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/shard_attributes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/value_equal.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

// Text, numbers, and dicts of those to some levels: `{"fc": {"version": 1}}`.
bool are_same(const Value& a, const Value& b, int levels) {
  const Dict* x = a.as_dict();
  const Dict* y = b.as_dict();
  if (x == nullptr || y == nullptr) {
    return a.type() == b.type() && equal_keys(a, b);
  }
  return a.address() == b.address() ||
         (levels > 0 &&
          std::ranges::equal(
              x->items,
              y->items,
              [levels](const Item& one, const Item& other) {
                return equal_keys(one.first, other.first) &&
                       are_same(one.second, other.second, levels - 1);
              }));
}

constexpr int kLevels = 3;

} // namespace

void ShardAttributes::add(
    const std::string& file,
    const std::vector<Item>& attributes) {
  std::vector<std::string> differing;
  for (const auto& [key, value] : attributes) {
    const std::string name = key_text(key);
    const auto [place, is_new] =
        places_.try_emplace(name, Place{.index = items_.size()});
    if (is_new) {
      // A dict of its own, which takes the entries of all files.
      const Dict* dict = value.as_dict();
      items_.emplace_back(
          key,
          dict == nullptr
              ? value
              : Value(
                    Dict{.kind = dict->kind, .attributes = dict->attributes}));
    }
    std::ranges::move(
        join(place->second, name, value),
        std::back_inserter(differing));
  }
  if (!differing.empty()) {
    warnings_.push_back(
        {.name = "W_INDEX_UNUSED",
         .text = format(
             "'{}' has other values than the files before it, which are left "
             "out: {}",
             escape(file),
             some_names(differing))});
  }
}

std::vector<std::string> ShardAttributes::join(
    Place& place,
    const std::string& name,
    const Value& value) {
  Value& own = items_[place.index].second;
  Dict* into = own.as_dict();
  const Dict* from = value.as_dict();
  if (into == nullptr || from == nullptr) {
    return are_same(own, value, kLevels) || own.address() == value.address()
               ? std::vector<std::string>()
               : std::vector{name};
  }
  std::vector<std::string> differing;
  for (const auto& [key, entry] : from->items) {
    const std::string text = key_text(key);
    const auto [at, is_new] =
        place.entries.try_emplace(text, into->items.size());
    if (is_new) {
      into->items.emplace_back(key, entry);
    } else if (!are_same(into->items[at->second].second, entry, kLevels)) {
      differing.push_back(format("{}.{}", name, text));
    }
  }
  return differing;
}

std::vector<Item> ShardAttributes::take() {
  return std::move(items_);
}

} // namespace lockstep::ckpt::internal
