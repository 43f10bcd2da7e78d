// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/buffer_pool.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include <ATen/core/CachingHostAllocator.h>

namespace lockstep::internal {
namespace {

constexpr std::uint64_t kAlignment = 64;

} // namespace

struct BufferPool::State {
  std::size_t max_idle = 0;
  bool pinned = false;
  std::mutex mutex;
  std::uint64_t bytes = 0; // of each idle buffer, and of new ones
  std::vector<std::byte*> idle; // reserved for max_idle: `give` cannot throw

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    drop_idle();
  }

  // The size of a buffer for `wanted` bytes.
  std::uint64_t fit(std::uint64_t wanted) {
    const std::scoped_lock lock(mutex);
    if (wanted >= bytes) {
      drop_idle();
      bytes = (wanted / kAlignment + 1) * kAlignment;
    }
    return bytes;
  }

  std::byte* get(std::uint64_t size) {
    {
      const std::scoped_lock lock(mutex);
      if (size == bytes && !idle.empty()) {
        std::byte* buffer = idle.back();
        idle.pop_back();
        return buffer;
      }
    }
    void* memory = std::aligned_alloc(kAlignment, size);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    return static_cast<std::byte*>(memory);
  }

  void give(std::byte* buffer, std::uint64_t size) noexcept {
    {
      const std::scoped_lock lock(mutex);
      if (size == bytes && idle.size() < max_idle) {
        idle.push_back(buffer);
        return;
      }
    }
    std::free(buffer);
  }

 private:
  void drop_idle() {
    for (std::byte* buffer : idle) {
      std::free(buffer);
    }
    idle.clear();
  }
};

BufferPool::BufferPool(std::size_t max_idle, bool pinned)
    : state_(std::make_shared<State>()) {
  state_->max_idle = max_idle;
  state_->pinned = pinned;
  state_->idle.reserve(max_idle);
}

at::DataPtr BufferPool::take(std::uint64_t bytes) {
  const std::uint64_t size = state_->fit(bytes);
  if (state_->pinned) {
    return at::getHostAllocator(at::kCUDA)->allocate(size);
  }
  struct Lease {
    std::shared_ptr<State> state;
    std::byte* buffer;
    std::uint64_t size;
  };
  auto lease = std::make_unique<Lease>(Lease{state_, state_->get(size), size});
  std::byte* const buffer = lease->buffer;
  const auto give_back = [](void* context) {
    const std::unique_ptr<Lease> ended(static_cast<Lease*>(context));
    ended->state->give(ended->buffer, ended->size);
  };
  return {buffer, lease.release(), give_back, at::kCPU};
}

} // namespace lockstep::internal
