// SPDX-License-Identifier: BSD-3-Clause
//
// What this machine's cores can do now, to compare a model with.
#pragma once

namespace lockstep::cli_train {

/// Multiplications with additions of float32 numbers in registers, by as many
/// threads, the best of several short windows: 0.1 s in all.
/// Units: operations per second; a multiplication with an addition is two.
double measure_peak(int threads);

} // namespace lockstep::cli_train
