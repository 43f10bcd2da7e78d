// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "lockstep/kernels/internal/norm_algorithm.h"

namespace lockstep::kernels {

/// float32 and bfloat16 on CUDA devices with channels last, or [N, C], for
/// channels that fill packs of sixteen bytes. Forward and backward are one
/// kernel each where a channel has few numbers (gpu_norm_at_once.h), else three
/// (gpu_norm_tables.h). Sums have one order: results repeat bit for bit. Work
/// is queued in the calling thread's current streams. Errors: as `GpuProgram`.
const NormAlgorithm& gpu_norm();

/// The kernels, in CUDA C++.
std::string gpu_norm_source();

} // namespace lockstep::kernels
