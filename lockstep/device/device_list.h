// SPDX-License-Identifier: BSD-3-Clause
//
// One grammar for lists of devices, wherever a user names them:
//   "cpu"  "cpu*2" (two replicas)  "cuda"  "cuda:1,3"  "cuda*4"  "sim*8"
//   for (c10::Device device : parse_devices("cuda:1,3")) { ... }
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>

namespace lockstep {

/// The devices that `spec` names, in its order. A bare "cuda" or "sim" means
/// all that are visible; `TYPE*N` the first N of them, and for the CPU N
/// replicas on this host. Naming simulated devices for the first time starts
/// them (sim_control.h).
/// Errors: throws kInvalidArgument for a spec outside the grammar, kUnavailable
/// for a device that this process does not have; both say what to write.
std::vector<c10::Device> parse_devices(std::string_view spec);

/// How many devices of `type` this process has; 1 for the CPU, 0 without the
/// backend. "sim" is there once it is started.
std::int64_t device_count(std::string_view type);

/// Shortest spec that `parse_devices` reads back: "cpu*2", "cuda:1,3". Mixed
/// types are joined with " + ".
std::string to_string(std::span<const c10::Device> devices);

} // namespace lockstep
