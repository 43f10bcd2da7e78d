// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/hooks.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "lockstep/sim/allocator.h"
#include "lockstep/sim/devices.h"
#include "lockstep/sim/generator.h"

namespace lockstep::sim {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index >= 0 && index < device_count();
  }
  c10::DeviceIndex deviceCount() const override {
    return device_count();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    check_index(index);
    set_current_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = current_device();
    setCurrentDevice(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index);
  }
  // Memory of all devices is host memory: the address does not tell.
  at::Device getDeviceFromPtr(void* /*data*/) const override {
    return sim_device(current_device());
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return &pinned_allocator();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes)
      const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};

} // namespace

at::PrivateUse1HooksInterface& hooks() {
  static auto* const instance = new Hooks();
  return *instance;
}

} // namespace lockstep::sim
