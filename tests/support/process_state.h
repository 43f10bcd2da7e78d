// SPDX-License-Identifier: BSD-3-Clause
//
// What this process holds: for tests that nothing is left behind.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>

#include <malloc.h>

namespace lockstep::test {

/// Threads that run now. A thread that was joined is none, though the kernel
/// may list it a moment longer (PF_EXITING in its flags, see proc(5)).
inline std::size_t thread_count() {
  constexpr unsigned long kExiting = 0x4;
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "stat");
    file.ignore(std::numeric_limits<std::streamsize>::max(), ')'); // the name
    char state = 0;
    std::array<long, 5> skipped = {}; // ids and the terminal
    unsigned long flags = kExiting; // of one that ended before this was read
    file >> state;
    for (long& field : skipped) {
      file >> field;
    }
    file >> flags;
    count += file && (flags & kExiting) == 0 ? 1 : 0;
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
