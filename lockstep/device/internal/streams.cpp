// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/streams.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep {

std::vector<c10::Stream> current_streams(std::span<const c10::Device> devices) {
  std::vector<c10::Stream> streams;
  streams.reserve(devices.size());
  if (devices.empty()) {
    return streams;
  }
  const c10::impl::VirtualGuardImpl impl(devices.front().type());
  for (const c10::Device& device : devices) {
    streams.push_back(impl.getStream(device));
  }
  return streams;
}

std::vector<c10::Stream> copy_streams(std::span<const c10::Device> devices) {
  std::vector<c10::Stream> streams;
  if (devices.empty() || devices.front().is_cpu()) {
    return streams;
  }
  const c10::impl::VirtualGuardImpl impl(devices.front().type());
  for (const c10::Device& device : devices) {
    streams.push_back(impl.getStreamFromGlobalPool(device));
  }
  return streams;
}

at::Tensor copy_in_stream(const at::Tensor& host, const c10::Stream& stream) {
  const c10::impl::VirtualGuardImpl impl(stream.device_type());
  const c10::Stream consumer = impl.getStream(stream.device());
  c10::Event arrived(stream.device_type());
  at::Tensor copy;
  {
    const c10::StreamGuard guard(stream);
    copy = host.to(stream.device(), /*non_blocking=*/true);
    arrived.record(stream);
  }
  arrived.block(consumer);
  // The memory belongs to `stream`: it must not be given to its next copy while
  // the consumer computes.
  copy.record_stream(consumer);
  return copy;
}

} // namespace lockstep
