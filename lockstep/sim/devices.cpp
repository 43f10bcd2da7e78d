// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/devices.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

using c10::DeviceIndex;

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::int32_t kDeviceFailed = 1;

// One device's numbers; threads of different devices share no cache line.
struct alignas(128) State {
  std::int32_t physical = 0;
  std::atomic<std::uint64_t> used{0};
  std::atomic<std::uint64_t> peak{0};
  std::atomic<std::uint64_t> limit{0};
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> operations{0};
  // Operation that fails, counted like `operations`.
  std::atomic<std::uint64_t> fails_at{kNever};
  std::atomic<std::uint64_t> copies_in{0};
  std::atomic<std::uint64_t> bytes_in{0};
  std::atomic<std::uint64_t> copies_out{0};
  std::atomic<std::uint64_t> bytes_out{0};
  std::atomic<std::uint64_t> copy_nanoseconds{0};
};

struct Table {
  std::array<State, kMaxSimDevices> devices = {};
  std::atomic<DeviceIndex> count{0};
  std::atomic<double> bytes_per_second{0};
  std::atomic<double> latency_seconds{0};
};

Table table;
thread_local DeviceIndex current = 0;

State& state(DeviceIndex index) {
  return table.devices[static_cast<std::uint8_t>(index)];
}

// "20.00 MiB", as in LibTorch's own message.
std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{" bytes", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(
      text.data(),
      text.size(),
      unit == 0 ? "%.0f%s" : "%.2f%s",
      value,
      kUnits[unit]);
  return text.data();
}

[[noreturn]] void out_of_memory(DeviceIndex index, std::uint64_t bytes) {
  const SimCounters now = counters(index);
  const std::uint64_t limit = now.limit_bytes;
  const std::uint64_t used = now.used_bytes;
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      "sim out of memory. Tried to allocate ",
      size_text(bytes),
      ". Device ",
      sim_device(index).str(),
      " has a total capacity of ",
      size_text(limit),
      " of which ",
      size_text(limit > used ? limit - used : 0),
      " is free. ",
      size_text(used),
      " is in use, ",
      size_text(now.peak_bytes),
      " was the most in use.");
  std::abort(); // not reached: the check throws
}

void raise_to(std::atomic<std::uint64_t>& peak, std::uint64_t value) {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

// Sleeps for the bulk, then spins: a sleep alone is late by some 60 us.
void pass_time(std::chrono::nanoseconds time) {
  constexpr std::chrono::microseconds kSlack{200};
  const auto end = std::chrono::steady_clock::now() + time;
  if (time > kSlack) {
    std::this_thread::sleep_for(time - kSlack);
  }
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

} // namespace

DeviceIndex device_count() noexcept {
  return table.count.load(std::memory_order_relaxed);
}

void configure(const std::int32_t* physical, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) {
    state(static_cast<DeviceIndex>(i)).physical = physical[i];
  }
  table.count.store(static_cast<DeviceIndex>(count));
}

DeviceIndex current_device() noexcept {
  return current;
}

void set_current_device(DeviceIndex index) noexcept {
  current = index;
}

void check_index(DeviceIndex index) {
  TORCH_CHECK(
      index >= 0 && index < device_count(),
      "sim error: invalid device ordinal ",
      static_cast<int>(index),
      "; this process has ",
      static_cast<int>(device_count()),
      " simulated devices");
}

void take_memory(DeviceIndex index, std::uint64_t bytes) {
  State& self = state(index);
  const std::uint64_t limit = self.limit.load(std::memory_order_relaxed);
  const std::uint64_t used = self.used.fetch_add(bytes) + bytes;
  if (limit != 0 && used > limit) {
    self.used.fetch_sub(bytes);
    out_of_memory(index, bytes);
  }
  self.allocations.fetch_add(1, std::memory_order_relaxed);
  raise_to(self.peak, used);
}

void give_memory(DeviceIndex index, std::uint64_t bytes) noexcept {
  state(index).used.fetch_sub(bytes);
}

std::uint64_t total_memory(DeviceIndex index) {
  const std::uint64_t limit = state(index).limit.load();
  if (limit != 0) {
    return limit;
  }
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void begin_operation(DeviceIndex index, const char* name) {
  State& self = state(index);
  const std::uint64_t number =
      self.operations.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t failing = self.fails_at.load(std::memory_order_relaxed);
  if (number < failing) {
    begin_work(index, name);
    return;
  }
  const std::string text = number == failing ? c10::str(
                                                   "sim error: device ",
                                                   sim_device(index),
                                                   " failed at operation ",
                                                   number,
                                                   " (",
                                                   name,
                                                   "), as scripted")
                                             : c10::str(
                                                   "sim error: device ",
                                                   sim_device(index),
                                                   " is lost since operation ",
                                                   failing,
                                                   "; asked for ",
                                                   name);
  throw c10::AcceleratorError(
      {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
      kDeviceFailed,
      text);
}

void charge_copy(c10::Device from, c10::Device to, std::uint64_t bytes) {
  double seconds = table.latency_seconds.load(std::memory_order_relaxed);
  const double speed = table.bytes_per_second.load(std::memory_order_relaxed);
  if (speed > 0) {
    seconds += static_cast<double>(bytes) / speed;
  }
  const auto nanoseconds = static_cast<std::uint64_t>(seconds * 1e9);
  if (from.is_privateuseone()) {
    State& self = state(from.index());
    self.copies_out.fetch_add(1);
    self.bytes_out.fetch_add(bytes);
    self.copy_nanoseconds.fetch_add(nanoseconds);
  }
  if (to.is_privateuseone()) {
    State& self = state(to.index());
    self.copies_in.fetch_add(1);
    self.bytes_in.fetch_add(bytes);
    self.copy_nanoseconds.fetch_add(nanoseconds);
  }
  if (nanoseconds > 0) {
    pass_time(std::chrono::nanoseconds(nanoseconds));
  }
}

SimCounters counters(DeviceIndex index) {
  const State& self = state(index);
  const std::uint64_t used = self.used.load();
  return {
      .physical = self.physical,
      .used_bytes = used,
      // A thread that has taken memory may be about to raise the peak.
      .peak_bytes = std::max(self.peak.load(), used),
      .limit_bytes = self.limit.load(),
      .allocations = self.allocations.load(),
      .operations = self.operations.load(),
      .copies_in = self.copies_in.load(),
      .bytes_in = self.bytes_in.load(),
      .copies_out = self.copies_out.load(),
      .bytes_out = self.bytes_out.load(),
      .copy_seconds = static_cast<double>(self.copy_nanoseconds.load()) / 1e9};
}

void reset_peak(DeviceIndex index) {
  State& self = state(index);
  self.peak.store(0);
  // Who allocates meanwhile raises it, too.
  raise_to(self.peak, self.used.load());
}

void reset_counters(DeviceIndex index) {
  State& self = state(index);
  reset_peak(index);
  // A script counts from where it was set, so it moves with the zero point.
  const std::uint64_t done = self.operations.exchange(0);
  if (const std::uint64_t at = self.fails_at.load(); at != kNever) {
    self.fails_at.store(at > done ? at - done : 0);
  }
  for (auto* count :
       {&self.allocations,
        &self.copies_in,
        &self.bytes_in,
        &self.copies_out,
        &self.bytes_out,
        &self.copy_nanoseconds}) {
    count->store(0);
  }
}

void set_memory_limit(DeviceIndex index, std::uint64_t bytes) {
  state(index).limit.store(bytes);
}

void set_link(const SimLink& link) {
  table.bytes_per_second.store(link.bytes_per_second);
  table.latency_seconds.store(link.latency_seconds);
}

void fail_at(DeviceIndex index, std::uint64_t operation) {
  State& self = state(index);
  self.fails_at.store(
      operation == 0 ? kNever : self.operations.load() + operation);
}

} // namespace lockstep::sim
