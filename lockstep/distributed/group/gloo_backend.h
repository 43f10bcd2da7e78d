// SPDX-License-Identifier: BSD-3-Clause
//
// Gloo behind c10d's `Backend`, in a header that needs none of Gloo's.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/distributed/group/backend_options.h"

namespace lockstep::dist::internal {

/// Connects to the other ranks. Errors: throws c10::Error.
c10::intrusive_ptr<c10d::Backend> gloo_backend(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const BackendOptions& options);

} // namespace lockstep::dist::internal
