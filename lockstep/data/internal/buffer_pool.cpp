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
  std::uint64_t bytes = 0;
  std::size_t max_idle = 0;
  bool pinned = false;
  std::mutex mutex;
  std::vector<std::byte*> idle; // reserved for max_idle: `give` cannot throw

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (std::byte* buffer : idle) {
      std::free(buffer);
    }
  }

  std::byte* get() {
    {
      const std::scoped_lock lock(mutex);
      if (!idle.empty()) {
        std::byte* buffer = idle.back();
        idle.pop_back();
        return buffer;
      }
    }
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    return static_cast<std::byte*>(memory);
  }

  void give(std::byte* buffer) noexcept {
    {
      const std::scoped_lock lock(mutex);
      if (idle.size() < max_idle) {
        idle.push_back(buffer);
        return;
      }
    }
    std::free(buffer);
  }
};

BufferPool::BufferPool(std::uint64_t bytes, std::size_t max_idle, bool pinned)
    : state_(std::make_shared<State>()) {
  state_->bytes = (bytes / kAlignment + 1) * kAlignment;
  state_->max_idle = max_idle;
  state_->pinned = pinned;
  state_->idle.reserve(max_idle);
}

at::DataPtr BufferPool::take() {
  if (state_->pinned) {
    return at::getHostAllocator(at::kCUDA)->allocate(state_->bytes);
  }
  struct Lease {
    std::shared_ptr<State> state;
    std::byte* buffer;
  };
  auto lease = std::make_unique<Lease>(Lease{state_, state_->get()});
  std::byte* const buffer = lease->buffer;
  const auto give_back = [](void* context) {
    const std::unique_ptr<Lease> ended(static_cast<Lease*>(context));
    ended->state->give(ended->buffer);
  };
  return {buffer, lease.release(), give_back, at::kCPU};
}

} // namespace lockstep::internal
