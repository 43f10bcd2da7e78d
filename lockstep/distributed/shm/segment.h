// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that processes of one host share and that has no name: the system
// frees it with the last process that maps it, however that one ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/descriptor.h"

namespace lockstep::dist::shm {

/// A file in memory, of zeros; another process opens it as /proc/PID/fd/FILE.
/// Errors: kUnavailable, as where the memory is not there.
Result<Descriptor> create_segment(std::size_t bytes);

/// The same, which takes memory only where it is written to.
Result<Descriptor> create_sparse_segment(std::size_t bytes);

/// The file `number` of process `pid`. Errors: kUnavailable.
Result<Descriptor> open_segment(pid_t pid, int number);

/// When the pages of a mapping become memory.
enum class Pages { kNow, kWhenUsed };

/// Maps a segment; it outlives the descriptor.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  /// Errors: kUnavailable.
  static Result<Mapping>
  map(const Descriptor& file, std::size_t bytes, Pages pages = Pages::kNow);

  [[nodiscard]] std::byte* data() const {
    return bytes_.data();
  }

 private:
  std::span<std::byte> bytes_ = {};
};

/// Readable when process `pid` has ended. Errors: kUnavailable.
Result<Descriptor> open_process(pid_t pid);

} // namespace lockstep::dist::shm
