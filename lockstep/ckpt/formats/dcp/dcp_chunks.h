// SPDX-License-Identifier: BSD-3-Clause
//
// Puts the chunks of one tensor together, for the readers of DCP only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt::internal {

/// A chunk with the bytes of its item.
struct DcpPart {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};
  /// A whole file of `torch.save`; null if `tensor` is the chunk.
  std::shared_ptr<ByteSource> item = {};
  std::shared_ptr<const Tensor> tensor = {};
};

/// Checks that the chunks of `item` tile the tensor: none outside, no overlap,
/// no gap. Errors: kCorrupt (E_DCP_COVERAGE, E_OVERFLOW, E_RANK), kUnsafe
/// (E_LIMIT) for more chunks than can be compared, kUnsupported (E_DTYPE) for
/// several chunks of elements that share bytes.
Status check_coverage(const DcpItem& item, const Limits& limits);

/// `item`, whose items are opened when its row-major bytes are first asked for.
/// Views and streams keep no bytes; `load` assembles them, and aliases a single
/// chunk that is contiguous. Errors of reading: those of the items; kCorrupt
/// (E_DCP_COVERAGE) if a chunk's tensor is another than announced.
Tensor make_chunked_tensor(
    const DcpItem& item,
    std::vector<DcpPart> parts,
    const LoadOptions& options,
    PartLoader load_part);

} // namespace lockstep::ckpt::internal
