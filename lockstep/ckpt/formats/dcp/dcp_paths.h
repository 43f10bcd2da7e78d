// SPDX-License-Identifier: BSD-3-Clause
//
// Paths in the metadata of a DCP folder. One long name, path or list of chunks
// can stand in the place of many there: copies of them count.
//   auto path = read_dcp_path(value, 0, budget);
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt::internal {

/// The keys of a tuple from `first` on; nothing if one is no key or there are
/// none. Errors: kUnsafe (E_DEPTH) for more than kMaxDcpPath; those of
/// `budget`.
Result<std::optional<std::vector<PathStep>>>
read_dcp_path(const Value& value, std::size_t first, Budget& budget);

/// The list kDcpEmpty of the metadata, if it is there. Errors: kCorrupt
/// (E_DCP_METADATA); those of `read_dcp_path`.
Result<std::vector<DcpEmpty>> read_dcp_empty(
    const Value& metadata,
    Budget& budget);

} // namespace lockstep::ckpt::internal
