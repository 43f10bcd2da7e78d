// SPDX-License-Identifier: BSD-3-Clause
//
// The lists of Python's `BatchSampler`, for programs that put batches together
// themselves, or change them, before a loader reads them.
//   auto batches = make_batches(sampler.indices(), 64);
//   std::ranges::reverse(batches);
//   loader.start_batches(batches, epoch);
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Numbers of samples, batch by batch.
using IndexBatches = std::vector<std::vector<std::int64_t>>;

/// `indices` in their order, `batch_size` at a time. The last batch may be
/// smaller; with `drop_last` it is left out then.
/// Errors: throws kInvalidArgument with PyTorch's text for a batch size
/// below 1.
IndexBatches make_batches(
    const std::vector<std::int64_t>& indices,
    std::int64_t batch_size,
    bool drop_last = false);

} // namespace lockstep
