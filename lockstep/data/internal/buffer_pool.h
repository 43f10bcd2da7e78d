// SPDX-License-Identifier: BSD-3-Clause
//
// Batch memory that comes back: fresh memory costs a page fault per 4 KiB,
// which is as slow as filling it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <c10/core/Allocator.h>

namespace lockstep::internal {

/// Buffers of one size, that of the largest one asked for so far.
/// Threads: safe to use from several threads.
class BufferPool {
 public:
  /// `max_idle` buffers are kept when unused. Pinned ones come from LibTorch's
  /// pool for CUDA, which also waits for copies that still read them.
  BufferPool(std::size_t max_idle, bool pinned);

  /// A buffer of at least `bytes`, aligned to 64 bytes, of unspecified content.
  /// A tensor's storage may own it: by that LibTorch knows pinned memory, also
  /// of parts of a tensor. Ownership: goes back to the pool with its owner,
  /// also when the pool object is gone by then. Errors: throws std::bad_alloc,
  /// and c10::Error for pinned memory.
  at::DataPtr take(std::uint64_t bytes);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace lockstep::internal
