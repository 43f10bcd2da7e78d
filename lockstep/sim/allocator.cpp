// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/sim/allocator.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "lockstep/sim/devices.h"
#include "lockstep/sim/stream_order.h"

namespace lockstep::sim {
namespace {

using c10::DataPtr;
using c10::DeviceIndex;

// What a DataPtr of a simulated device owns: memory of its own, or a CPU
// storage that a kernel made.
struct Block {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  DeviceIndex device = 0;
  c10::Storage adopted = {};
};

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  forget_memory(block->data);
  give_memory(block->device, block->bytes);
  if (!block->adopted) {
    c10::free_cpu(block->data);
  }
  delete block; // NOLINT(cppcoreguidelines-owning-memory): owned by a DataPtr
}

DataPtr make_pointer(Block block) {
  void* const data = block.data;
  const c10::Device device = sim_device(block.device);
  own_memory(data, block.device);
  return {data, new Block(std::move(block)), &free_block, device};
}

void fill(c10::CachingAllocator::StatArray& stats, const SimCounters& from) {
  auto& all = stats[static_cast<std::size_t>(
      c10::CachingAllocator::StatType::AGGREGATE)];
  all.current = static_cast<std::int64_t>(from.used_bytes);
  all.peak = static_cast<std::int64_t>(from.peak_bytes);
}

class Allocator final : public c10::DeviceAllocator {
 public:
  DataPtr allocate(std::size_t bytes) override {
    const DeviceIndex device = current_device();
    if (bytes == 0) {
      return {nullptr, sim_device(device)};
    }
    take_memory(device, bytes);
    try {
      return make_pointer(
          {.data = c10::alloc_cpu(bytes), .bytes = bytes, .device = device});
    } catch (...) {
      give_memory(device, bytes);
      throw;
    }
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool initialized() override {
    return device_count() > 0;
  }
  // Nothing is cached.
  void emptyCache(c10::MempoolId_t /*pool*/) override {}
  void recordStream(const DataPtr& data, c10::Stream stream) override {
    keep_for_stream(data.get(), stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      DeviceIndex device) override {
    check_index(device);
    const SimCounters now = counters(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    fill(stats.allocated_bytes, now);
    fill(stats.active_bytes, now);
    fill(stats.reserved_bytes, now);
    fill(stats.requested_bytes, now);
    return stats;
  }
  // None are kept.
  void resetAccumulatedStats(DeviceIndex device) override {
    check_index(device);
  }
  void resetPeakStats(DeviceIndex device) override {
    check_index(device);
    reset_peak(device);
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(
      DeviceIndex device) override {
    check_index(device);
    const std::uint64_t total = total_memory(device);
    const std::uint64_t used = counters(device).used_bytes;
    return {total > used ? total - used : 0, total};
  }
};

// Addresses of pinned blocks. Never destroyed: tensors may outlive main().
class PinnedAllocator final : public c10::Allocator {
 public:
  DataPtr allocate(std::size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    if (data != nullptr) {
      const std::lock_guard lock(mutex_);
      blocks_.insert(data);
    }
    return {data, data, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_pinned;
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }
  bool has(const void* data) {
    const std::lock_guard lock(mutex_);
    return blocks_.contains(data);
  }

 private:
  static void free_pinned(void* data);
  std::mutex mutex_;
  std::unordered_set<const void*> blocks_;
};

PinnedAllocator& pinned() {
  static auto* const instance = new PinnedAllocator();
  return *instance;
}

void PinnedAllocator::free_pinned(void* data) {
  {
    const std::lock_guard lock(pinned().mutex_);
    pinned().blocks_.erase(data);
  }
  c10::free_cpu(data);
}

} // namespace

c10::DeviceAllocator& allocator() {
  static auto* const instance = new Allocator();
  return *instance;
}

DataPtr adopt(c10::Storage storage, DeviceIndex index) {
  const std::uint64_t bytes = storage.nbytes();
  void* const data = storage.mutable_data();
  if (data == nullptr) {
    return {nullptr, sim_device(index)};
  }
  take_memory(index, bytes);
  return make_pointer(
      {.data = data,
       .bytes = bytes,
       .device = index,
       .adopted = std::move(storage)});
}

void resize_storage(c10::StorageImpl& storage, std::size_t bytes) {
  TORCH_CHECK(
      storage.resizable(),
      "Trying to resize storage that is not resizable");
  const OnDevice device(storage.device().index());
  DataPtr data = allocator().allocate(bytes);
  const std::size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    std::memcpy(data.get(), storage.data(), kept);
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

c10::Allocator& pinned_allocator() {
  return pinned();
}

bool is_pinned(const void* data) {
  return pinned().has(data);
}

} // namespace lockstep::sim
