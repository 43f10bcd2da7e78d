// SPDX-License-Identifier: BSD-3-Clause
//
// Current device, streams and events, as LibTorch asks for them. Kernels run at
// once in the calling thread, so a stream is only a name and an event only a
// time: whatever was asked for before it has happened. What would have to wait
// on a real device is checked by stream_order.h.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace lockstep::sim {

/// Lives for ever, as LibTorch's registry demands.
const c10::impl::DeviceGuardImplInterface& device_guard();

/// This thread's stream on the device.
c10::StreamId current_stream_id(c10::DeviceIndex device) noexcept;

} // namespace lockstep::sim
