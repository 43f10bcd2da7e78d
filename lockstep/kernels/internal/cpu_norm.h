// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/kernels/internal/norm_algorithm.h"

namespace lockstep::kernels {

/// float32 and bfloat16 on the CPU: which loops run over which tensors
/// (norm_loops.h, norm_tiles.h) and what becomes of their sums.
const NormAlgorithm& cpu_norm();

} // namespace lockstep::kernels
