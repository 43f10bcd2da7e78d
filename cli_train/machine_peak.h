// SPDX-License-Identifier: BSD-3-Clause
//
// What this machine's cores or a device can do now, to compare a model with.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace lockstep::cli_train {

/// Multiplications with additions of float32 numbers in registers, by as many
/// threads, the best of several short windows: 0.1 s in all.
/// Units: operations per second; a multiplication with an addition is two.
double measure_peak(int threads);

/// The best of several products of square matrices on a device, as large as it
/// takes to keep it busy for some milliseconds; on the CPU with the threads
/// that LibTorch has. Units: operations per second, as above.
double measure_device_peak(c10::Device device, c10::ScalarType type);

} // namespace lockstep::cli_train
