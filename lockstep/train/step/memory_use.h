// SPDX-License-Identifier: BSD-3-Clause
//
// How much memory a run needs.
#pragma once

#include <exception>
#include <span>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/distributed/process_group.h"

namespace lockstep::train {

/// Whether memory was what lacked, also in a replica.
bool is_out_of_memory(const std::exception_ptr& error);

/// The most memory that the process of each rank had, by rank. Every rank calls
/// it. Units: bytes.
std::vector<double> peak_of_ranks(const dist::ProcessGroup& group);

/// What tensors take of each device of this process now; 0 as below. Units:
/// bytes.
std::vector<double> used_of_devices(std::span<const c10::Device> devices);

/// The most that tensors took of each device of this process; 0 where that is
/// not known, as for the CPU, whose memory is the process's. Units: bytes.
std::vector<double> peak_of_devices(std::span<const c10::Device> devices);

} // namespace lockstep::train
