// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/streams.h"

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

} // namespace lockstep
