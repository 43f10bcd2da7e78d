// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/memory_use.h"

#include <sys/resource.h>

#include <exception>

#include <c10/core/CachingDeviceAllocator.h>

#include "lockstep/device/sim_control.h"

namespace lockstep::train {
namespace {

double peak_of(const c10::Device& device) {
  if (device.is_privateuseone()) {
    return static_cast<double>(sim_counters(device.index()).peak_bytes);
  }
  if (!device.is_cuda()) {
    return 0;
  }
  const auto stats =
      at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return static_cast<double>(
      stats
          .allocated_bytes[static_cast<std::size_t>(
              c10::CachingAllocator::StatType::AGGREGATE)]
          .peak);
}

} // namespace

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

std::vector<double> peak_of_devices(std::span<const c10::Device> devices) {
  std::vector<double> peaks;
  for (const c10::Device& device : devices) {
    try {
      peaks.push_back(peak_of(device));
    } catch (const std::exception&) {
      peaks.push_back(0); // an allocator that keeps no account
    }
  }
  return peaks;
}

} // namespace lockstep::train
