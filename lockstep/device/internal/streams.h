// SPDX-License-Identifier: BSD-3-Clause
//
// Streams are chosen per thread. Work that is handed to other threads goes on
// in the caller's streams, so that it stays in the caller's order.
//   const auto streams = current_streams(devices);         // in the caller
//   worker i: c10::StreamGuard guard(streams[i]);          // device and stream
#pragma once

#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace lockstep {

/// The calling thread's stream on each of `devices`, all of one type.
std::vector<c10::Stream> current_streams(std::span<const c10::Device> devices);

/// A stream of each device for copies from the host; none for CPU devices.
std::vector<c10::Stream> copy_streams(std::span<const c10::Device> devices);

/// `host`, a CPU tensor, on the device of `stream`. The copy runs in `stream`,
/// beside what the device computes, and the calling thread's current stream
/// there waits for it. From pinned memory the host does not wait either, so
/// that `host` must not be written until the stream is done.
at::Tensor copy_in_stream(const at::Tensor& host, const c10::Stream& stream);

} // namespace lockstep
