// SPDX-License-Identifier: BSD-3-Clause
//
// Random generators of simulated devices. Each owns a CPU generator and draws
// the very numbers that the CPU draws with the same seed.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace lockstep::sim {

/// The device's default generator; -1 is the current device.
const at::Generator& default_generator(c10::DeviceIndex index);
/// A new one with LibTorch's default seed.
at::Generator new_generator(c10::DeviceIndex index);
/// The CPU generator inside.
/// Errors: throws c10::Error with LibTorch's text if it is no generator of a
/// simulated device.
const at::Generator& cpu_generator(const at::Generator& generator);

} // namespace lockstep::sim
