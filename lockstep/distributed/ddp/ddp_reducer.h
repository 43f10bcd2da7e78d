// SPDX-License-Identifier: BSD-3-Clause
//
// The c10d::Reducer behind DistributedDataParallel, and its buckets.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/distributed/ddp/ddp_parts.h"

namespace lockstep::dist::internal {

/// While it lives, buckets are made below autograd: gradients that are views of
/// them are then not known as views, so that LibTorch's `Optimizer::zero_grad`,
/// which detaches them in place, works.
using BucketsOutOfSight = at::AutoDispatchBelowADInplaceOrView;

/// A Reducer that can be told its buckets for good.
class Reducer final : public c10d::Reducer {
 public:
  using c10d::Reducer::Reducer;
  void rebuild_buckets() {
    const BucketsOutOfSight guard;
    c10d::Reducer::rebuild_buckets();
  }
  void keep_buckets() {
    has_rebuilt_bucket_ = true;
  }
};

/// Numbers of parameters, bucket by bucket.
using Buckets = std::vector<std::vector<std::size_t>>;

/// Those to begin with.
Buckets first_buckets(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options);

/// Those of an earlier run.
/// Errors: throws kMismatch if they are not `count` parameters, each once.
Buckets saved_buckets(const BucketLayout& layout, std::size_t count);

/// Its hooks are on the parameters as long as it lives.
std::shared_ptr<Reducer> make_reducer(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options,
    const c10::intrusive_ptr<c10d::ProcessGroup>& group,
    Buckets buckets);

} // namespace lockstep::dist::internal
