// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/memory_use.h"

#include <sys/resource.h>

#include <exception>
#include <new>
#include <string_view>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include "lockstep/device/sim_control.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::train {
namespace {

/// What tensors take. Units: bytes.
struct DeviceBytes {
  double now = 0;
  double most = 0;
};

DeviceBytes bytes_of(const c10::Device& device) {
  if (device.is_privateuseone()) {
    const SimCounters counters = sim_counters(device.index());
    return {
        static_cast<double>(counters.used_bytes),
        static_cast<double>(counters.peak_bytes)};
  }
  if (!device.is_cuda()) {
    return {};
  }
  const auto stats =
      at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  const auto& all = stats.allocated_bytes[static_cast<std::size_t>(
      c10::CachingAllocator::StatType::AGGREGATE)];
  return {static_cast<double>(all.current), static_cast<double>(all.peak)};
}

std::vector<double> all_of(
    std::span<const c10::Device> devices,
    double DeviceBytes::*which) {
  std::vector<double> bytes;
  for (const c10::Device& device : devices) {
    try {
      bytes.push_back(bytes_of(device).*which);
    } catch (const std::exception&) {
      bytes.push_back(0); // an allocator that keeps no account
    }
  }
  return bytes;
}

} // namespace

bool is_out_of_memory(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError&) {
    return true;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const ReplicaError& replica) {
    return is_out_of_memory(replica.cause());
  } catch (const c10::Error& other) {
    // The CPU's allocator has no class of its own.
    return std::string_view(other.what()).find("can't allocate memory") !=
           std::string_view::npos;
  } catch (...) {
    return false;
  }
}

std::vector<double> peak_of_ranks(const dist::ProcessGroup& group) {
  constexpr double kKibibyte = 1024; // Linux's unit of ru_maxrss
  ::rusage usage = {};
  static_cast<void>(::getrusage(RUSAGE_SELF, &usage));
  std::vector<double> peaks(static_cast<std::size_t>(group.size()));
  peaks[static_cast<std::size_t>(group.rank())] =
      static_cast<double>(usage.ru_maxrss) * kKibibyte;
  group.sum(peaks);
  return peaks;
}

std::vector<double> used_of_devices(std::span<const c10::Device> devices) {
  return all_of(devices, &DeviceBytes::now);
}

std::vector<double> peak_of_devices(std::span<const c10::Device> devices) {
  return all_of(devices, &DeviceBytes::most);
}

} // namespace lockstep::train
