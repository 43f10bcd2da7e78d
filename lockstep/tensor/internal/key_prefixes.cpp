// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/key_prefixes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lockstep::internal {
namespace {

// "a.b." of "a.b.weight", then "a."; longest first.
Keys dotted_prefixes(std::string_view key) {
  Keys prefixes;
  for (std::size_t dot = key.rfind('.'); dot != std::string_view::npos;
       dot = dot == 0 ? std::string_view::npos : key.rfind('.', dot - 1)) {
    prefixes.emplace_back(key.substr(0, dot + 1));
  }
  return prefixes;
}

} // namespace

bool all_start_with(
    std::span<const std::string> keys,
    const std::string& prefix) {
  return std::ranges::all_of(keys, [&](const std::string& key) {
    return key.starts_with(prefix);
  });
}

bool has_dot(std::span<const std::string> keys, std::size_t from) {
  return std::ranges::any_of(keys, [&](const std::string& key) {
    return key.find('.', from) != std::string::npos;
  });
}

Keys shared_prefixes(std::span<const std::string> keys) {
  Keys shared;
  for (const std::string& prefix :
       keys.empty() ? Keys() : dotted_prefixes(keys.front())) {
    if (all_start_with(keys, prefix)) {
      shared.push_back(prefix);
    }
  }
  return shared;
}

std::vector<Cover> covers(
    std::span<const std::string> bare,
    std::span<const std::string> longer) {
  const std::unordered_set<std::string_view> known(bare.begin(), bare.end());
  std::vector<Cover> found;
  std::unordered_map<std::string_view, std::size_t> index;
  for (const std::string_view key : longer) {
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos;
         dot = key.find('.', dot + 1)) {
      if (known.contains(key.substr(dot + 1))) {
        const std::string_view prefix = key.substr(0, dot + 1);
        const auto [place, is_new] = index.emplace(prefix, found.size());
        if (is_new) {
          found.push_back({.prefix = std::string(prefix)});
        }
        ++found[place->second].count;
      }
    }
  }
  std::erase_if(found, [&](const Cover& cover) {
    return cover.count * 2 < bare.size();
  });
  return found;
}

Keys covering_prefixes(
    std::span<const std::string> bare,
    std::span<const std::string> longer) {
  Keys prefixes;
  for (Cover& cover : covers(bare, longer)) {
    if (cover.count == bare.size()) {
      prefixes.push_back(std::move(cover.prefix));
    }
  }
  return prefixes;
}

} // namespace lockstep::internal
