// SPDX-License-Identifier: BSD-3-Clause
//
// Copies bytes from file to file inside the kernel: pages of the source go into
// a pipe as they are, and from there into the target (splice(2)).
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/base/internal/real_files.h"

namespace lockstep::internal {

/// A pipe for one target, made when first used. Threads: one at a time.
class KernelPipe {
 public:
  /// Appends up to `length` bytes from `offset` of the file `from` to `to`, at
  /// its position. Returns how many; 0 if `from` ends or cannot be read so, or
  /// the kernel cannot do it between these files; -errno if `to` refused bytes.
  std::int64_t
  move(int from, std::uint64_t offset, int to, std::uint64_t length);

 private:
  bool open();
  std::int64_t drain(int to, std::int64_t filled);

  std::optional<Descriptor> read_end_ = {};
  std::optional<Descriptor> write_end_ = {};
};

} // namespace lockstep::internal
