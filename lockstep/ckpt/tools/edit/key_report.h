// SPDX-License-Identifier: BSD-3-Clause
//
// What an edit of keys did, or would do: the table of --dry-run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// One key that changed.
struct KeyChange {
  /// Empty for a key that is new.
  std::string from = {};
  /// Empty for a key that is dropped.
  std::string to = {};

  friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

/// All of them.
struct KeyReport {
  /// Key of the weights that were edited; empty for the top level.
  std::string weights_key = {};
  /// In file order.
  std::vector<KeyChange> changes = {};
  /// Keys whose values came from elsewhere, in file order.
  std::vector<std::string> replaced = {};
  /// Keys that stay as they are.
  std::uint64_t kept = 0;
};

/// A tree after an edit. Ownership: shares what did not change with the tree
/// it was made of, which is left as it was.
struct Edited {
  Value root = {};
  KeyReport report = {};
};

/// Lines `from -> to`, and `= key` for a replaced one, at most `max_lines` of
/// them; foreign text is escaped.
std::string to_text(const KeyReport& report, std::uint64_t max_lines);

/// "renamed 6 keys, replaced 1 key, kept 3 keys".
std::string counts_text(const KeyReport& report);

/// `weights_key`, `renamed` [{from, to}], `dropped`, `added`, `replaced`,
/// `kept`.
Json to_json(const KeyReport& report);

} // namespace lockstep::ckpt
