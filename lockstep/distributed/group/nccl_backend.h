// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL behind c10d's `Backend`, in a header that needs none of CUDA's. Without
// LibTorch's CUDA libraries no_nccl.cpp stands in for nccl_backend.cpp.
#pragma once

#include <optional>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/error.h"
#include "lockstep/distributed/group/backend_options.h"

namespace lockstep::dist::internal {

/// Why there is no NCCL here, in PyTorch's words; nothing if there is.
std::optional<Error> nccl_error();

/// Connects to nobody: NCCL does so when a device's first tensor comes.
/// Errors: throws c10::Error.
c10::intrusive_ptr<c10d::Backend> nccl_backend(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const BackendOptions& options);

} // namespace lockstep::dist::internal
