// SPDX-License-Identifier: BSD-3-Clause
//
// How a reduction joins numbers: element by element, rank by rank.
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "lockstep/distributed/shm/byte_collectives.h"

namespace lockstep::dist::shm {

/// LibTorch's own kernels on numbers of `dtype`; half types are rounded after
/// each rank, as Gloo's are.
/// Errors: throws c10::Error for an operation that there is not.
Join join_of(const c10d::ReduceOp& op, c10::ScalarType dtype);

} // namespace lockstep::dist::shm
