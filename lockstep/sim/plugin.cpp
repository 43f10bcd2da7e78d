// SPDX-License-Identifier: BSD-3-Clause
//
// The plugin's door: device/internal/sim_plugin.h says what each function does.
// Nothing is registered by loading the library; `start` does it.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lockstep/device/internal/sim_plugin.h"
#include "lockstep/sim/allocator.h"
#include "lockstep/sim/devices.h"
#include "lockstep/sim/guard.h"
#include "lockstep/sim/hooks.h"
#include "lockstep/sim/kernels.h"
#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

bool has_cuda() {
  using c10::DeviceType;
  return c10::impl::hasDeviceGuardImpl(DeviceType::CUDA) &&
         c10::impl::getDeviceGuardImpl(DeviceType::CUDA)->deviceCount() > 0;
}

void register_backend() {
  constexpr auto kType = c10::DeviceType::PrivateUse1;
  c10::register_privateuse1_backend("sim");
  c10::SetAllocator(kType, &allocator());
  c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kType)].store(
      &device_guard());
  at::RegisterPrivateUse1HooksInterface(&hooks());
  register_kernels();
  register_autocast();
}

const char* start(const std::int32_t* physical, std::int32_t count) {
  if (device_count() > 0) {
    return "the simulated devices are started already";
  }
  if (count < 1 || count > kMaxSimDevices) {
    return "the number of simulated devices must be from 1 to 64";
  }
  if (has_cuda()) {
    return "LibTorch knows one accelerator per process, and this one has CUDA "
           "devices";
  }
  if (c10::is_privateuse1_backend_registered()) {
    return "another extension has taken LibTorch's one place for a backend";
  }
  try {
    configure(physical, count);
    register_backend();
  } catch (const std::exception& error) {
    // Half registered: this process cannot try again, so the text may stay.
    static const std::string text = error.what();
    return text.c_str();
  }
  return nullptr;
}

c10::DeviceIndex index_of(std::int32_t device) {
  return static_cast<c10::DeviceIndex>(device);
}

constexpr SimPlugin kPlugin{
    .start = &start,
    .counters =
        [](std::int32_t device, SimCounters* result) {
          *result = counters(index_of(device));
        },
    .reset_counters =
        [](std::int32_t device) { reset_counters(index_of(device)); },
    .set_memory_limit =
        [](std::int32_t device, std::uint64_t bytes) {
          set_memory_limit(index_of(device), bytes);
        },
    .set_link = [](const SimLink* link) { set_link(*link); },
    .fail_at =
        [](std::int32_t device, std::uint64_t operation) {
          fail_at(index_of(device), operation);
        },
    .check_streams = &check_streams};

} // namespace
} // namespace lockstep::sim

extern "C" [[gnu::visibility("default")]] const lockstep::SimPlugin*
lockstep_sim_plugin();

const lockstep::SimPlugin* lockstep_sim_plugin() {
  return &lockstep::sim::kPlugin;
}
