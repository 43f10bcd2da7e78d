// SPDX-License-Identifier: BSD-3-Clause
//
// What this process holds: for tests that nothing is left behind.
#pragma once

#include <cstddef>
#include <filesystem>

#include <malloc.h>

namespace lockstep::test {

/// Threads that run now.
inline std::size_t thread_count() {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    count += entry.is_directory() ? 1 : 0;
  }
  return count;
}

/// Bytes that malloc has handed out, in all arenas; 0 under a sanitizer, which
/// has an allocator (and a leak check) of its own.
inline std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

} // namespace lockstep::test
