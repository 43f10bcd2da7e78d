// SPDX-License-Identifier: BSD-3-Clause
//
// Compares the elements of two tensors of one shape, block by block.
#pragma once

#include "lockstep/ckpt/inspect.h"

namespace lockstep::ckpt::internal {

/// Fills the numbers of `row`. Tensors without bytes are equal.
/// Errors: those of the storages; kUnsafe (E_LIMIT) for a view that repeats its
/// bytes too often.
Status compare_elements(
    const Tensor& a,
    const Tensor& b,
    const DiffOptions& options,
    DiffRow& row);

} // namespace lockstep::ckpt::internal
