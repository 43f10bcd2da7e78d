// SPDX-License-Identifier: BSD-3-Clause
//
// Which memo entries a pickle reads back. Python's pickler puts every object
// into the memo and takes out a handful; the machine keeps only those, so that
// what is needed once dies at once.
//   const MemoReads reads = find_memo_reads(bytes, limits.max_opcodes);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {

/// A set of memo entries.
class MemoReads {
 public:
  /// Entries from `limit` on count as read: a pickle cannot fill so many one
  /// by one, and the set stays small.
  explicit MemoReads(std::uint64_t limit = 0) : limit_(limit) {}

  void add(std::uint64_t index);
  [[nodiscard]] bool contains(std::uint64_t index) const {
    return index < bits_.size() ? bits_[index] : index >= limit_;
  }

 private:
  std::uint64_t limit_;
  std::vector<bool> bits_;
};

/// The entries that `bytes` reads before STOP. Bytes that are not a pickle end
/// the search, as they end the machine, and so do `max_opcodes`.
MemoReads find_memo_reads(
    ByteSpan bytes,
    std::uint64_t max_opcodes,
    Grammar grammar = Grammar::kWritten);

/// The number of a text operand as Python's unpicklers read it: `int()` takes
/// spaces around it, a sign and underscores. Digits without leading zeros;
/// nothing if it is no number or negative.
std::optional<std::string> memo_digits(std::string_view line);

} // namespace lockstep::ckpt
