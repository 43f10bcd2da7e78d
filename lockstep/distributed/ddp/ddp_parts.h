// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of a module that DistributedDataParallel works with, in the order
// in which Python's collects them: ranks of both languages must agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "lockstep/distributed/distributed_data_parallel.h"

namespace lockstep::dist::internal {

/// A tensor of the module, by its dotted name.
struct NamedTensor {
  std::string name = {};
  at::Tensor tensor = {};
};

struct DdpParts {
  /// Those whose gradients are averaged.
  std::vector<NamedTensor> trained = {};
  /// Beside each of `trained`: whether its gradient is sparse.
  std::vector<bool> is_sparse = {};
  /// All parameters, frozen ones too, and then all buffers.
  std::vector<NamedTensor> parameters = {};
  std::vector<NamedTensor> buffers = {};
  /// Layers whose statistics are those of all ranks.
  std::int64_t sync_batch_norms = 0;
};

/// Without those that `options` ignores.
/// Errors: throws kInvalidArgument for a module that cannot be wrapped.
DdpParts parts_of(
    torch::nn::Module& module,
    const DistributedDataParallelOptions& options);

/// The buffers alone, also of a module whose parameters are all frozen. A
/// program may have put others in their place.
std::vector<NamedTensor> buffers_of(
    torch::nn::Module& module,
    const DistributedDataParallelOptions& options);

/// The tensors alone.
std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named);

/// The same, detached.
std::vector<at::Tensor> detached(const std::vector<NamedTensor>& named);

/// What must be the same on all ranks, a line for each fact.
std::string fingerprint(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options);

/// Compares the fingerprints of all ranks.
/// Errors: throws kMismatch, the same on every rank, with the first lines that
/// differ on both sides; as `exchange`.
void check_equal(ProcessGroup::Impl& group, const std::string& fingerprint);

} // namespace lockstep::dist::internal
