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

/// How an `Object` of a name may be written, beside the bare name of a safe
/// one.
enum class Written : std::uint8_t {
  kNever,
  /// With arguments: the safe loader calls it.
  kAsCall,
  /// As an instance with a state: the safe loader makes one.
  kAsInstance,
};

struct NameRow {
  /// In Python 3's spelling.
  std::string_view name = {};
  Trust trust = Trust::kUnknown;
  /// Makes a typed value of a call; null: it stays an `Object`.
  CallResult (*call)(const Tuple&) = nullptr;
  Written written = Written::kNever;
  /// Of an enum: how its members begin.
  std::string_view members = {};
};

/// Null for a name without a row.
const NameRow* find_name(std::string_view name);

/// "module.Enum.MEMBER" with an enum of the table: what `getattr` may fetch.
bool is_enum_member(std::string_view name);

/// Of a name without a row, or with one of kUnknown: it runs code or reaches
/// the system (dangerous_names.h), or it is not a plain name at all.
bool reaches_the_system(std::string_view name);

} // namespace lockstep::ckpt
