// SPDX-License-Identifier: BSD-3-Clause
//
// The simulated devices: how many there are, what each holds and has done, and
// what it is told to refuse. One table per process, because LibTorch has one
// registry of devices.
#pragma once

#include <cstdint>

#include <c10/core/Device.h>

#include "lockstep/device/internal/sim_plugin.h"

namespace lockstep::sim {

/// `sim:index`.
inline c10::Device sim_device(c10::DeviceIndex index) {
  return {c10::DeviceType::PrivateUse1, index};
}

/// Number of visible devices; 0 before `configure`.
c10::DeviceIndex device_count() noexcept;
/// Called once, before the backend is registered.
void configure(const std::int32_t* physical, std::int32_t count);

/// The device of this thread. Not checked: see `check_index`.
c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex index) noexcept;
/// Errors: throws c10::Error if there is no such device.
void check_index(c10::DeviceIndex index);

/// Puts this thread on a device for a scope.
class OnDevice {
 public:
  explicit OnDevice(c10::DeviceIndex index) noexcept
      : before_(current_device()) {
    set_current_device(index);
  }
  ~OnDevice() {
    set_current_device(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::DeviceIndex before_;
};

/// Counts `bytes` as held by the device.
/// Errors: throws c10::OutOfMemoryError, and counts nothing, past the limit.
void take_memory(c10::DeviceIndex index, std::uint64_t bytes);
void give_memory(c10::DeviceIndex index, std::uint64_t bytes) noexcept;
/// Bytes of the limit, or of this machine if there is none.
std::uint64_t total_memory(c10::DeviceIndex index);

/// Counts one kernel.
/// Errors: throws c10::AcceleratorError if the script says that it fails.
void begin_operation(c10::DeviceIndex index, const char* name);
/// Counts a copy between two different devices (one may be the CPU) and takes
/// the time that the link's model says.
void charge_copy(c10::Device from, c10::Device to, std::uint64_t bytes);

SimCounters counters(c10::DeviceIndex index);
void reset_counters(c10::DeviceIndex index);
/// The peak of the memory alone.
void reset_peak(c10::DeviceIndex index);
void set_memory_limit(c10::DeviceIndex index, std::uint64_t bytes);
void set_link(const SimLink& link);
void fail_at(c10::DeviceIndex index, std::uint64_t operation);

} // namespace lockstep::sim
