// SPDX-License-Identifier: BSD-3-Clause
//
// Paths in the metadata of a DCP folder, and what its copies may cost.
//   DcpBudget budget(bytes.size(), limits);
//   auto path = read_dcp_path(value, 0, budget);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt::internal {

/// Bounds what is copied out of the pickle: there, one long name, path or list
/// of chunks can stand in the place of many.
class DcpBudget {
 public:
  DcpBudget(std::uint64_t pickle_bytes, const Limits& limits);

  /// Counts a copy before it is made. Errors: kUnsafe (E_LIMIT).
  Status take(std::uint64_t bytes);
  /// Counts `count` copies of `size` bytes.
  Status take(std::uint64_t count, std::uint64_t size);

 private:
  std::uint64_t left_;
};

/// The keys of a tuple from `first` on; nothing if one is no key or there are
/// none. Errors: kUnsafe (E_DEPTH) for more than kMaxDcpPath; those of
/// `budget`.
Result<std::optional<std::vector<PathStep>>>
read_dcp_path(const Value& value, std::size_t first, DcpBudget& budget);

/// The list kDcpEmpty of the metadata, if it is there. Errors: kCorrupt
/// (E_DCP_METADATA); those of `read_dcp_path`.
Result<std::vector<DcpEmpty>> read_dcp_empty(
    const Value& metadata,
    DcpBudget& budget);

} // namespace lockstep::ckpt::internal
