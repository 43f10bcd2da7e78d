// SPDX-License-Identifier: BSD-3-Clause
//
// The attributes of weights in several files: each file has `__metadata__` and
// `_metadata` of its own.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// Joins the attributes of the files, and the entries of those that are dicts.
/// Where two files differ, the first counts.
class ShardAttributes {
 public:
  void add(const std::string& file, const std::vector<Item>& attributes);
  /// All of them, once.
  [[nodiscard]] std::vector<Item> take();
  /// Names what does not count (W_INDEX_UNUSED).
  [[nodiscard]] const std::vector<Warning>& warnings() const {
    return warnings_;
  }

 private:
  // Index of an attribute and those of its entries, by their keys.
  struct Place {
    std::size_t index = 0;
    std::map<std::string, std::size_t> entries = {};
  };

  // Returns the names of entries that differ.
  std::vector<std::string>
  join(Place& place, const std::string& name, const Value& value);

  std::vector<Item> items_;
  std::map<std::string, Place> places_;
  std::vector<Warning> warnings_;
};

} // namespace lockstep::ckpt::internal
