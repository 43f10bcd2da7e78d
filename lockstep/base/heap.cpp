// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

#include <malloc.h>

namespace lockstep {
namespace {

std::atomic<bool> is_tuned = false;

// Maps the pages of `block`. A kernel that cannot (before 5.14) maps them one
// by one, later.
void map_pages(std::byte* block, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto before = std::bit_cast<std::uintptr_t>(block) % page;
  ::madvise(block - before, before + bytes, MADV_POPULATE_WRITE);
}

} // namespace

void tune_heap() {
#ifdef __GLIBC__
  constexpr int kStep = 1 << 20;
  constexpr int kKept = 64 << 20;
  // NOLINTBEGIN(concurrency-mt-unsafe): before there are other threads
  ::mallopt(M_TOP_PAD, kStep);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
  // NOLINTEND(concurrency-mt-unsafe)
  is_tuned = true;
#endif
}

void expect_heap(std::uint64_t bytes) {
  // Larger blocks would not come from the heap; more is worth no hint.
  constexpr std::size_t kBlock = 64 << 10;
  constexpr std::uint64_t kMost = 4 << 20;
  if (!is_tuned) {
    return;
  }
  // All are held until the last one is there, then the heap has them back.
  std::vector<std::vector<std::byte>> blocks(std::min(bytes, kMost) / kBlock);
  for (auto& block : blocks) {
    block.reserve(kBlock);
    map_pages(block.data(), kBlock);
  }
}

} // namespace lockstep
