// SPDX-License-Identifier: BSD-3-Clause
//
// The bounds of `Limits` as a table: flags, `lockstep ckpt limits` and the
// documents are made from it.
//   for (const LimitInfo& row : limit_table()) { limits.*row.member ... }
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// One bound that can be changed.
struct LimitInfo {
  /// "max-pickle-bytes": the flag without its dashes.
  std::string_view name = {};
  /// "bytes", "levels".
  std::string_view unit = {};
  std::string_view help = {};
  std::uint64_t Limits::*member = nullptr;
};

/// All rows, in the order of `Limits`.
std::span<const LimitInfo> limit_table();

/// A bound that no flag changes.
struct FixedLimit {
  std::string_view name = {};
  std::string_view unit = {};
  std::string_view help = {};
  std::uint64_t value = 0;
};

std::span<const FixedLimit> fixed_limits();

/// `limits` without the bounds on what a small file may expand to: deflated
/// records, views that repeat their bytes.
Limits expanding(Limits limits);

} // namespace lockstep::ckpt
