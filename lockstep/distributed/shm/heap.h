// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of a rank that the other ranks of its host read and write, too.
// Tensors that lie in it are summed where they lie, without a copy.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/distributed/shm/segment.h"

namespace lockstep::dist::shm {

/// A rank's own. It takes addresses for all memory of the machine, and memory
/// for what is allocated. Threads: any.
class Heap {
 public:
  /// Errors: kUnavailable.
  static Result<std::shared_ptr<Heap>> create();

  /// The other ranks open it and map `bytes_for_all` bytes.
  [[nodiscard]] int file() const {
    return file_.get();
  }
  static std::size_t bytes_for_all();

  /// Of whole pages; nothing when there is no memory.
  std::optional<std::span<std::byte>> allocate(std::size_t bytes);
  void free(std::span<std::byte> block);
  /// Where `bytes` begin; nothing if they do not lie in the heap.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(
      std::span<const std::byte> bytes) const;
  [[nodiscard]] std::byte* data() const {
    return memory_.data();
  }

 private:
  Heap(Descriptor file, Mapping memory);

  pid_t owner_ = ::getpid();
  Descriptor file_;
  Mapping memory_;
  std::mutex mutex_;
  /// Begin and end of what is free; two never touch.
  std::map<std::size_t, std::size_t> free_ = {};
};

/// The heaps of all ranks, as this process sees them.
struct Heaps {
  std::shared_ptr<Heap> own = {};
  /// By rank; this rank's own is mapped a second time.
  std::vector<Mapping> all = {};
};

} // namespace lockstep::dist::shm
