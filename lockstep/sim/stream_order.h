// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the bugs of streams that simulated devices would hide, as their work is
// done when the call returns: memory used in one stream while another one may
// still write it.
//
// Note [Order of streams]
// Work of one stream runs in order. Between streams only three things give an
// order: an event recorded in one and waited for by another, the host waiting
// for a stream before it starts more work, and a copy between devices, for
// which both streams wait (CUDA's runtime in LibTorch does the same). Each
// stream has a vector clock: how much of every stream's work is done before its
// own goes on. An access that the other's clock does not cover is an error, and
// so is memory freed while a stream other than its own may use it, unless
// `record_stream` was called. All host threads count as one: their locks are
// not seen, so that an order that only a lock gives is taken for granted.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace lockstep::sim {

/// A stream: its device and its number there.
using StreamKey = std::pair<c10::DeviceIndex, c10::StreamId>;
/// Pieces of work of each stream that are done before something.
using StreamClock = std::map<StreamKey, std::uint64_t>;

/// Off at first. Turning it on or off forgets what was seen.
void check_streams(bool is_on);
/// Nothing below does anything while this is false.
bool checks_streams() noexcept;

/// A piece of work begins in this thread's stream on the device; the name lives
/// for ever.
/// Errors of this and `use_memory`: throws c10::Error that names both
/// operations and streams.
void begin_work(c10::DeviceIndex device, const char* operation);
/// That piece of work reads or writes the memory that begins at `data`.
void use_memory(const void* data, c10::DeviceIndex device, bool is_write);
/// This thread's streams on both devices wait for each other.
void meet(c10::DeviceIndex a, c10::DeviceIndex b);

/// Memory that belongs to this thread's stream on the device.
void own_memory(const void* data, c10::DeviceIndex device);
/// Threads: any. What it finds is reported by the next piece of work.
void forget_memory(const void* data) noexcept;
/// As `Tensor::record_stream`: the memory is kept until the stream is done.
void keep_for_stream(const void* data, const c10::Stream& stream);

/// What is done when `stream` gets here.
StreamClock clock_of(const c10::Stream& stream);
/// `stream` waits until that is done.
void wait_for(const c10::Stream& stream, const StreamClock& clock);
/// The host waits until that is done.
void host_waits_for(const StreamClock& clock);
/// The host waits for all streams of the device.
void host_waits_for_device(c10::DeviceIndex device);

} // namespace lockstep::sim
