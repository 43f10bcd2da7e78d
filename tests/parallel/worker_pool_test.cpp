// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "tests/sim/support.h"
#include "tests/support/sanitizer.h"

namespace lockstep::parallel {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(WorkerPool, RefusesAJobFromItsOwnTasks) {
  WorkerPool pool(3, 1);
  WorkerPool other(2, 1);
  std::atomic<int> refused = 0;
  const auto count_refused = [&](const auto& job) {
    const Error error = error_of(job);
    refused += error.code == ErrorCode::kInvalidArgument ? 1 : 0;
  };
  const auto nothing = [](std::size_t) {};
  pool.run(3, [&](std::size_t) {
    count_refused([&] { pool.run(3, nothing); });
  });
  EXPECT_EQ(refused, 3);
  // Through the threads of another pool, too, which alone are free.
  pool.run(1, [&](std::size_t) {
    other.run(2, [&](std::size_t) {
      count_refused([&] { pool.run(1, nothing); });
    });
  });
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(pool.run(3, nothing).size(), 3U);
}

TEST(WorkerPool, AThreadThatCannotStartIsAnErrorAndNoHang) {
  if (test::kIsSanitized) {
    GTEST_SKIP() << "sanitizers end the process when memory ends";
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit tight = before;
  // Stacks of 8 MiB for a few threads, not for 200.
  tight.rlim_cur =
      static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (rlim_t{256} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const Error error = error_of([] { const WorkerPool pool(200, 1); });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("of 200: "));
}

} // namespace
} // namespace lockstep::parallel
