// SPDX-License-Identifier: BSD-3-Clause
//
// What the plugin liblockstep_sim.so and its loader (device/sim_control.h) say
// to each other: plain structs and functions that do not throw, so that neither
// side links the other.
//   const auto* plugin = entry();   // the symbol kSimPluginEntry
//   plugin->start(physical, count);
#pragma once

#include <cstdint>

#include "lockstep/device/sim_control.h"

namespace lockstep {

/// Changed with every change of this file and of the structs that it passes.
inline constexpr std::uint32_t kSimPluginVersion = 2;
/// Name of the plugin's only symbol, a `SimPluginEntry`.
inline constexpr const char* kSimPluginEntry = "lockstep_sim_plugin";
/// Devices that one process may have.
inline constexpr std::int32_t kMaxSimDevices = 64;

/// The plugin's functions. `device` is a logical number and in range.
struct SimPlugin {
  std::uint32_t version = kSimPluginVersion;
  /// Registers the backend; device i stands for physical[i]. Returns null, or
  /// why not (a text that lives for ever).
  const char* (*start)(const std::int32_t* physical, std::int32_t count) = {};
  void (*counters)(std::int32_t device, SimCounters* counters) = {};
  /// Peak becomes what is used now; all counts become 0.
  void (*reset_counters)(std::int32_t device) = {};
  void (*set_memory_limit)(std::int32_t device, std::uint64_t bytes) = {};
  void (*set_link)(const SimLink* link) = {};
  /// The n-th operation from now fails, and all after it; 0 makes it well.
  void (*fail_at)(std::int32_t device, std::uint64_t operation) = {};
  void (*check_streams)(bool is_on) = {};
};

using SimPluginEntry = const SimPlugin* (*)();

} // namespace lockstep
