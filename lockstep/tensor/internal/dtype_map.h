// SPDX-License-Identifier: BSD-3-Clause
//
// The two names of an element type: the file's and LibTorch's.
#pragma once

#include <optional>

#include <c10/core/ScalarType.h>

#include "lockstep/ckpt/tensor.h"

namespace lockstep {

/// Nothing for a type that only files have, or that needs a quantizer.
std::optional<c10::ScalarType> to_scalar_type(ckpt::DType dtype);

/// Nothing for a type that checkpoint files do not have.
std::optional<ckpt::DType> to_dtype(c10::ScalarType type);

} // namespace lockstep
