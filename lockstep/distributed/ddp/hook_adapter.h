// SPDX-License-Identifier: BSD-3-Clause
//
// A `CommHook` as c10d's Reducer calls it.
#pragma once

#include <memory>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/distributed/comm_hook.h"

namespace lockstep::dist::internal {

/// Errors: what the hook gives back is checked in backward, which throws
/// kInvalidArgument for another shape or dtype than the bucket's.
std::unique_ptr<c10d::CommHookInterface> adapt(
    CommHook hook,
    ProcessGroup group);

} // namespace lockstep::dist::internal
