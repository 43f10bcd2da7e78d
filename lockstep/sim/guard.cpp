// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/guard.h"

#include <array>
#include <atomic>
#include <chrono>

#include "lockstep/sim/devices.h"
#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;
using Clock = std::chrono::steady_clock;

// As many as CUDA's pool has per device and priority.
constexpr c10::StreamId kPoolSize = 32;

thread_local std::array<c10::StreamId, kMaxSimDevices> current_stream{};

struct Event {
  Clock::time_point time = {};
  StreamClock done = {};
};

const Event& event_at(void* event) {
  return *static_cast<const Event*>(event);
}

DeviceIndex index_of(Device device) {
  return device.has_index() ? device.index() : current_device();
}

c10::StreamId& stream_of(DeviceIndex index) {
  return current_stream[static_cast<std::uint8_t>(index)];
}

Stream make_stream(DeviceIndex index, c10::StreamId id) {
  return Stream(Stream::UNSAFE, sim_device(index), id);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override {
    return c10::DeviceType::PrivateUse1;
  }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override {
    return sim_device(current_device());
  }
  void setDevice(Device device) const override {
    TORCH_INTERNAL_ASSERT(device.is_privateuseone());
    check_index(device.index());
    set_current_device(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    set_current_device(device.index());
  }
  DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  c10::DeviceCapability getDeviceCapability(Device /*device*/) const override {
    return {};
  }

  Stream getStream(Device device) const override {
    const DeviceIndex index = index_of(device);
    return make_stream(index, stream_of(index));
  }
  Stream getDefaultStream(Device device) const override {
    return make_stream(index_of(device), 0);
  }
  Stream getStreamFromGlobalPool(Device device, bool /*high_priority*/)
      const override {
    return getNewStream(device, 0);
  }
  Stream getNewStream(Device device, int /*priority*/) const override {
    static std::atomic<c10::StreamId> next{0};
    return make_stream(index_of(device), 1 + next.fetch_add(1) % kPoolSize);
  }
  Stream exchangeStream(Stream stream) const override {
    const DeviceIndex index = stream.device_index();
    const Stream before = make_stream(index, stream_of(index));
    stream_of(index) = stream.id();
    return before;
  }
  // Not an address: libraries that take a native stream get its number.
  void* getStreamNativeHandle(Stream stream) const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(stream.id());
  }
  bool queryStream(const Stream& /*stream*/) const override {
    return true;
  }
  void synchronizeStream(const Stream& stream) const override {
    host_waits_for(clock_of(stream));
  }
  void synchronizeDevice(DeviceIndex index) const override {
    check_index(index);
    host_waits_for_device(index);
  }

  void record(
      void** event,
      const Stream& stream,
      DeviceIndex index,
      c10::EventFlag /*flag*/) const override {
    TORCH_CHECK(
        index == -1 || index == stream.device_index(),
        "Event device index ",
        static_cast<int>(index),
        " does not match recording stream's device index ",
        static_cast<int>(stream.device_index()),
        ".");
    if (*event == nullptr) {
      *event = new Event(); // owned by the c10::Event: see destroyEvent
    }
    auto* const recorded = static_cast<Event*>(*event);
    recorded->time = Clock::now();
    recorded->done = clock_of(stream);
  }
  void block(void* event, const Stream& stream) const override {
    wait_for(stream, event_at(event).done);
  }
  bool queryEvent(void* /*event*/) const override {
    return true;
  }
  void synchronizeEvent(void* event) const override {
    host_waits_for(event_at(event).done);
  }
  void destroyEvent(void* event, DeviceIndex /*index*/)
      const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, DeviceIndex /*index*/)
      const override {
    TORCH_CHECK(
        first != nullptr && second != nullptr,
        "Both events must be recorded before calculating elapsed time.");
    const auto time = event_at(second).time - event_at(first).time;
    return std::chrono::duration<double, std::milli>(time).count();
  }
};

} // namespace

const c10::impl::DeviceGuardImplInterface& device_guard() {
  static const auto* const instance = new Guard();
  return *instance;
}

c10::StreamId current_stream_id(c10::DeviceIndex device) noexcept {
  return stream_of(device);
}

} // namespace lockstep::sim
