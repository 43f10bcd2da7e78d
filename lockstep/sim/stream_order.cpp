// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/stream_order.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include "lockstep/sim/guard.h"

namespace lockstep::sim {
namespace {

using c10::DeviceIndex;

// One stream's newest use of a piece of memory.
struct Use {
  std::uint64_t time = 0;
  const char* operation = "";
};

struct Memory {
  std::map<StreamKey, Use> uses = {};
  StreamKey writer = {};
  bool is_written = false;
  StreamKey owner = {};
  bool is_owned = false;
  // By record_stream.
  std::set<StreamKey> kept_for = {};
};

struct Clocks {
  std::mutex mutex = {};
  std::map<StreamKey, StreamClock> streams = {};
  StreamClock host = {};
  std::unordered_map<const void*, Memory> memory = {};
  // What a destructor found and could not throw.
  std::string late_error = {};
};

std::atomic<bool> is_checking{false};
thread_local const char* current_operation = "";

// Never destroyed: tensors may outlive main().
Clocks& clocks() {
  static auto* const instance = new Clocks();
  return *instance;
}

// The state, locked; null while nothing is checked.
class Entry {
 public:
  Entry() {
    if (checks_streams()) {
      state_ = &clocks();
      lock_ = std::unique_lock(state_->mutex);
    }
  }
  explicit operator bool() const noexcept {
    return state_ != nullptr;
  }
  Clocks& operator*() const noexcept {
    return *state_;
  }
  Clocks* operator->() const noexcept {
    return state_;
  }

 private:
  Clocks* state_ = nullptr;
  std::unique_lock<std::mutex> lock_ = {};
};

StreamKey key_of(const c10::Stream& stream) {
  return {stream.device_index(), stream.id()};
}

StreamKey current_key(DeviceIndex device) {
  return {device, current_stream_id(device)};
}

std::string name_of(const StreamKey& key) {
  return c10::str(
      "stream ",
      key.second,
      " of sim:",
      static_cast<int>(key.first));
}

void merge(StreamClock& into, const StreamClock& from) {
  for (const auto& [stream, time] : from) {
    std::uint64_t& known = into[stream];
    known = std::max(known, time);
  }
}

// True if `stream` goes on only after that use.
bool is_after(StreamClock& clock, const StreamKey& user, const Use& use) {
  return clock[user] >= use.time;
}

void check_order(
    Clocks& s,
    const StreamKey& here,
    const StreamKey& other,
    const Use& use) {
  TORCH_CHECK(
      is_after(s.streams[here], other, use),
      current_operation,
      " in ",
      name_of(here),
      " uses memory that ",
      use.operation,
      " in ",
      name_of(other),
      " may still be using: nothing makes the one wait for the other. "
      "Record an event there and let this stream wait for it.");
}

} // namespace

void check_streams(bool is_on) {
  Clocks& s = clocks();
  const std::lock_guard lock(s.mutex);
  s.streams.clear();
  s.host.clear();
  s.memory.clear();
  s.late_error.clear();
  is_checking.store(is_on);
}

bool checks_streams() noexcept {
  return is_checking.load(std::memory_order_relaxed);
}

void begin_work(DeviceIndex device, const char* operation) {
  const Entry s;
  if (!s) {
    return;
  }
  const std::string late = std::exchange(s->late_error, {});
  TORCH_CHECK(late.empty(), late);
  const StreamKey here = current_key(device);
  StreamClock& clock = s->streams[here];
  merge(clock, s->host);
  ++clock[here];
  current_operation = operation;
}

void use_memory(const void* data, DeviceIndex device, bool is_write) {
  const Entry s;
  if (!s || data == nullptr) {
    return;
  }
  const StreamKey here = current_key(device);
  Memory& memory = s->memory[data];
  if (is_write) {
    for (const auto& [stream, use] : memory.uses) {
      check_order(*s, here, stream, use);
    }
    memory.writer = here;
    memory.is_written = true;
  } else if (memory.is_written) {
    check_order(*s, here, memory.writer, memory.uses.at(memory.writer));
  }
  memory.uses[here] = {
      .time = s->streams[here][here],
      .operation = current_operation};
}

void meet(DeviceIndex a, DeviceIndex b) {
  const Entry s;
  if (!s) {
    return;
  }
  StreamClock& first = s->streams[current_key(a)];
  StreamClock& second = s->streams[current_key(b)];
  merge(first, second);
  merge(second, first);
}

void own_memory(const void* data, DeviceIndex device) {
  const Entry s;
  if (!s) {
    return;
  }
  s->memory[data] = {.owner = current_key(device), .is_owned = true};
}

void forget_memory(const void* data) noexcept {
  const Entry s;
  if (!s) {
    return;
  }
  const auto found = s->memory.find(data);
  if (found == s->memory.end()) {
    return;
  }
  const Memory& memory = found->second;
  for (const auto& [stream, use] : memory.uses) {
    if (memory.is_owned && !memory.kept_for.contains(stream) &&
        !is_after(s->streams[memory.owner], stream, use)) {
      s->late_error = c10::str(
          "memory of ",
          name_of(memory.owner),
          " was freed while ",
          use.operation,
          " in ",
          name_of(stream),
          " may still be using it: call record_stream.");
    }
  }
  s->memory.erase(found);
}

void keep_for_stream(const void* data, const c10::Stream& stream) {
  const Entry s;
  if (!s) {
    return;
  }
  s->memory[data].kept_for.insert(key_of(stream));
}

StreamClock clock_of(const c10::Stream& stream) {
  const Entry s;
  if (!s) {
    return {};
  }
  return s->streams[key_of(stream)];
}

void wait_for(const c10::Stream& stream, const StreamClock& clock) {
  const Entry s;
  if (!s) {
    return;
  }
  merge(s->streams[key_of(stream)], clock);
}

void host_waits_for(const StreamClock& clock) {
  const Entry s;
  if (!s) {
    return;
  }
  merge(s->host, clock);
}

void host_waits_for_device(DeviceIndex device) {
  const Entry s;
  if (!s) {
    return;
  }
  for (const auto& [stream, clock] : s->streams) {
    if (stream.first == device) {
      merge(s->host, clock);
    }
  }
}

} // namespace lockstep::sim
