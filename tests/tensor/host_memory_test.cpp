// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/host_memory.h"

#include <sys/resource.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Two threads allocate and free what a small training step would.
void churn() {
  constexpr std::int64_t kElements = 4 << 20;
  std::vector<std::jthread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([] {
      for (int step = 0; step < 8; ++step) {
        const auto first = at::ones({kElements});
        const auto second = at::ones({kElements});
      }
    });
  }
}

// In a process of its own: the setting is for good.
[[noreturn]] void count_faults_of_a_second_round() {
  keep_freed_host_memory();
  churn();
  const long before = minor_faults();
  churn();
  // A page of these tensors costs a fault when it is new: 131,072 in all. Where
  // the threads of the first round ran one after the other, as many as are
  // there at a time are new to the second.
  constexpr long kPagesAtATime = 4L * 4096;
  std::_Exit(minor_faults() - before < kPagesAtATime + 2000 ? 0 : 1);
}

// Also a fresh one: with the arenas that threads of other tests have left, the
// threads of the second round would get others than those of the first.
TEST(HostMemory, FreedBlocksAreUsedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(count_faults_of_a_second_round(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace lockstep
