// SPDX-License-Identifier: BSD-3-Clause
//
// The names that pickles of PyTorch refer to, one row for each: what loading it
// means in Python, and what we make of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/ckpt/pickle/global_calls.h"

namespace lockstep::ckpt {

/// What a name in a pickle may do when Python loads it.
enum class Trust : std::uint8_t {
  kUnknown,
  /// `torch.load(weights_only=True)` accepts it.
  kSafe,
  /// A class or function that only holds data, which that loader does not know.
  kDataOnly,
  /// Runs code, loads code or reaches the system.
  kRunsCode,
};

struct NameRow {
  /// In Python 3's spelling.
  std::string_view name = {};
  Trust trust = Trust::kUnknown;
  /// Makes a typed value of a call; null: it stays an `Object`.
  CallResult (*call)(const Tuple&) = nullptr;
  /// The safe loader calls it: it may be written with arguments.
  bool is_function = false;
};

/// Null for a name without a row.
const NameRow* find_name(std::string_view name);

/// Of a name without a row: its module runs code or reaches the system, or it
/// is no plain name at all.
bool reaches_the_system(std::string_view name);

} // namespace lockstep::ckpt
