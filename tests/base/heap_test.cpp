// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/heap.h"

#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sanitizer.h"

namespace lockstep {
namespace {

std::int64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Page faults of many small allocations of together `bytes`.
std::int64_t faults_of(std::size_t bytes) {
  constexpr std::size_t kSmall = 1000;
  std::vector<std::vector<std::byte>> blocks(bytes / kSmall);
  const std::int64_t before = page_faults();
  for (auto& block : blocks) {
    block.resize(kSmall);
  }
  return page_faults() - before;
}

TEST(Heap, ExpectedPagesTakeNoFaults) {
  constexpr std::size_t kBytes = 2 << 20;
  tune_heap();
  expect_heap(kBytes);
  constexpr std::int64_t kMost = kBytes / 4096 / 4; // a quarter of them
  if (!test::kIsSanitized) { // those have another allocator
    EXPECT_LT(faults_of(kBytes), kMost);
  }
}

TEST(Heap, NothingIsExpectedWithoutLimit) {
  const std::int64_t before = page_faults();
  expect_heap(std::numeric_limits<std::uint64_t>::max());
  EXPECT_LT(page_faults() - before, 10'000);
}

} // namespace
} // namespace lockstep
