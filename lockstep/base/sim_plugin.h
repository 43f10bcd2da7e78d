// SPDX-License-Identifier: BSD-3-Clause
//
// What the plugin liblockstep_sim.so and its loader (device/sim_control.h) say
// to each other: plain structs and functions that do not throw, so that neither
// side links the other.
//   const auto* plugin = entry();   // the symbol kSimPluginEntry
//   plugin->start(physical, count);
#pragma once

#include <cstdint>

namespace lockstep {

/// Changed with every change of this file.
inline constexpr std::uint32_t kSimPluginVersion = 2;
/// Name of the plugin's only symbol, a `SimPluginEntry`.
inline constexpr const char* kSimPluginEntry = "lockstep_sim_plugin";
/// Devices that one process may have.
inline constexpr std::int32_t kMaxSimDevices = 64;

/// What one simulated device has done. Times and counts since the start or the
/// last reset.
struct SimCounters {
  /// Number before LOCKSTEP_VISIBLE_DEVICES renumbered.
  std::int32_t physical = 0;
  /// Units: bytes that tensors hold now, and at most at the same time.
  std::uint64_t used_bytes = 0;
  std::uint64_t peak_bytes = 0;
  /// Units: bytes; 0 is no limit.
  std::uint64_t limit_bytes = 0;
  /// Blocks of memory handed out.
  std::uint64_t allocations = 0;
  /// Kernels run, copies included.
  std::uint64_t operations = 0;
  /// Copies from another device or the CPU to this one, and the other way.
  std::uint64_t copies_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t copies_out = 0;
  std::uint64_t bytes_out = 0;
  /// Units: seconds that the link's model charged for those copies.
  double copy_seconds = 0;
};

/// How long a copy between devices takes: latency + bytes / bandwidth.
struct SimLink {
  /// Units: bytes per second; 0 is infinitely fast.
  double bytes_per_second = 0;
  /// Units: seconds per copy.
  double latency_seconds = 0;
};

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
