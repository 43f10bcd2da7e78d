// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <malloc.h>

namespace lockstep {

#ifdef __GLIBC__

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLargestReserve = std::size_t{8} << 30;

std::size_t half_of_memory() {
  const auto pages = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return pages / 2 * page_bytes;
}

// Grows the heap once, by addresses only, and asks for huge pages there.
void reserve_huge_pages() {
  const std::size_t bytes = std::min(half_of_memory(), kLargestReserve);
  void* const block = std::malloc(bytes);
  if (block == nullptr) {
    return; // address space is limited: small pages, then
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t aligned = (begin + kHugePage - 1) & ~(kHugePage - 1);
  const std::size_t skipped = aligned - begin;
  ::madvise(
      static_cast<char*>(block) + skipped,
      (bytes - skipped) & ~(kHugePage - 1),
      MADV_HUGEPAGE);
  std::free(block);
}

} // namespace

void keep_freed_host_memory() {
  constexpr int kNever = -1;
  constexpr int kLargest = INT32_MAX;
  // NOLINTBEGIN(concurrency-mt-unsafe): before other threads begin
  mallopt(M_ARENA_MAX, 1); // other arenas give their heaps back
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kNever);
  // NOLINTEND(concurrency-mt-unsafe)
  reserve_huge_pages();
}

#else

void keep_freed_host_memory() {}

#endif

} // namespace lockstep
