// SPDX-License-Identifier: BSD-3-Clause
//
// The keys of an object, to find one that comes twice.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>

namespace lockstep::ckpt {

/// Views the keys, which must outlive it.
class SeenKeys {
 public:
  /// False if `key` was there.
  bool insert(std::string_view key) {
    if (count_ < few_.size()) {
      const auto known = std::span(few_).first(count_);
      const bool is_new = std::ranges::find(known, key) == known.end();
      few_[count_++] = key;
      return is_new;
    }
    if (many_.empty()) {
      many_.insert(few_.begin(), few_.end());
    }
    return many_.insert(key).second;
  }

 private:
  std::array<std::string_view, 16> few_ = {}; // searched one by one
  std::size_t count_ = 0;
  std::set<std::string_view> many_;
};

} // namespace lockstep::ckpt
