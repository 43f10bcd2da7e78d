// SPDX-License-Identifier: BSD-3-Clause
//
// Streams are chosen per thread. Work that is handed to other threads goes on
// in the caller's streams, so that it stays in the caller's order.
//   const auto streams = current_streams(devices);         // in the caller
//   worker i: c10::StreamGuard guard(streams[i]);          // device and stream
#pragma once

#include <span>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace lockstep {

/// The calling thread's stream on each of `devices`, all of one type.
std::vector<c10::Stream> current_streams(std::span<const c10::Device> devices);

} // namespace lockstep
