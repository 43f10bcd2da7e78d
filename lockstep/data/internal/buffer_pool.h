// SPDX-License-Identifier: BSD-3-Clause
//
// Batch memory that comes back: fresh memory costs a page fault per 4 KiB,
// which is as slow as filling it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::internal {

/// Buffers of one size. Threads: safe to use from several threads.
class BufferPool {
 public:
  /// Units: bytes per buffer; `max_idle` buffers are kept when unused.
  BufferPool(std::uint64_t bytes, std::size_t max_idle);

  /// A buffer, aligned to 64 bytes, of unspecified content.
  /// Ownership: goes back to the pool with its last owner, also when the pool
  /// object is gone by then. Errors: throws std::bad_alloc.
  std::shared_ptr<std::byte> take();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace lockstep::internal
