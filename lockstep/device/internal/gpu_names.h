// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include <c10/core/Device.h>

namespace lockstep {

/// "NVIDIA H100 80GB HBM3": the names of the GPUs among `devices`, each once,
/// joined with " + ", as the driver has them. Empty without CUDA devices.
std::string gpu_names(std::span<const c10::Device> devices);

} // namespace lockstep
