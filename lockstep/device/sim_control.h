// SPDX-License-Identifier: BSD-3-Clause
//
// Simulated devices: N accelerators whose memory is host memory and whose
// kernels are the CPU's. docs/sim.md says what is simulated and what not.
//   start_sim({.devices = 4});            // or parse_devices("sim*4")
//   auto x = torch::ones({2}, "sim:3");
//   sim_counters(3).used_bytes;
//
// Environment: LOCKSTEP_SIM_DEVICES is how many exist;
// LOCKSTEP_VISIBLE_DEVICES="1,3" shows two of them as sim:0 and sim:1, as
// CUDA_VISIBLE_DEVICES does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

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

/// How the devices are started.
struct SimOptions {
  /// Devices that this process shall see. 0: as the environment says, else 1.
  /// Without LOCKSTEP_SIM_DEVICES as many are made as are asked for.
  std::int32_t devices = 0;
};

/// Loads the plugin and registers the backend `sim` with LibTorch. Must come
/// before the process's first backward pass, because LibTorch makes its device
/// threads there, once. Later calls do nothing.
/// Threads: may be called by several at once.
/// Errors: throws kUnavailable without the plugin, beside CUDA devices, after
/// the first backward pass, or if fewer devices are visible than asked for;
/// kInvalidArgument for a bad variable or count.
void start_sim(const SimOptions& options = {});

/// Devices that are visible; 0 before the start.
std::int32_t sim_device_count() noexcept;

/// The physical numbers behind sim:0, sim:1, ...: what `visible` (the text of
/// LOCKSTEP_VISIBLE_DEVICES, if set) leaves of `existing` devices. Read as
/// PyTorch reads CUDA_VISIBLE_DEVICES: blanks around an item and anything
/// behind its number ("1gpu") do not count; an item without a number, a
/// negative one and one that does not exist end the list; a number named twice
/// empties it. So do names ("GPU-...", "MIG-..."), which simulated devices do
/// not have.
std::vector<std::int32_t> visible_sim_devices(
    std::optional<std::string_view> visible,
    std::int32_t existing);

/// What LOCKSTEP_VISIBLE_DEVICES was at the start and how many devices it left,
/// for hints; empty if it was not set.
std::string hidden_sim_devices();

/// Warns once if LOCKSTEP_VISIBLE_DEVICES is not what it was at the start.
void warn_of_late_sim_variable();

/// Errors of all functions below: throws kUnavailable for a device that is not
/// there.
SimCounters sim_counters(std::int32_t device);
/// Peak becomes what is used now, counts become 0.
void reset_sim_counters(std::int32_t device);
/// Units: bytes; 0 is no limit. What is held already stays.
void set_sim_memory_limit(std::int32_t device, std::uint64_t bytes);
/// For copies between all devices, and between devices and the CPU.
void set_sim_link(const SimLink& link);
/// The `operation`-th kernel from now fails, and all after it: a lost device.
/// 0 makes it well again.
void fail_sim_device(std::int32_t device, std::uint64_t operation);
/// While on, an operation throws c10::Error if another stream may still be
/// using its memory, because no event, host or copy puts the two in order; so
/// does the first operation after such memory was freed without
/// `record_stream`. Slow; for tests of code that shall run on CUDA.
void check_sim_streams(bool is_on);

} // namespace lockstep
#pragma GCC visibility pop
