// SPDX-License-Identifier: BSD-3-Clause
//
// Two tensors of one shape, element by element.
#pragma once

#include "lockstep/base/error.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::ckpt::internal {

/// Fills the numbers of `row`, block by block; both tensors have bytes.
/// Errors: those of the storages; the message says of which side.
Status compare_elements(
    const Tensor& a,
    const Tensor& b,
    const DiffOptions& options,
    DiffRow& row);

} // namespace lockstep::ckpt::internal
