// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/worker_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <pthread.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/replica_group.h"
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

// The threads of tasks that wait for each other: all their own.
std::vector<pthread_t> threads_of(WorkerPool& pool) {
  std::vector<pthread_t> threads(pool.size());
  std::latch all(static_cast<std::ptrdiff_t>(pool.size()));
  pool.run(pool.size(), [&](std::size_t i) {
    threads[i] = ::pthread_self();
    all.arrive_and_wait();
  });
  return threads;
}

TEST(WorkerPool, EachTaskRunsInItsOwnThreadOrInTheCallers) {
  WorkerPool pool(4, 1);
  const pthread_t caller = ::pthread_self();
  const std::vector<pthread_t> own = threads_of(pool);
  EXPECT_EQ(
      pthread_equal(own[0], caller) != 0,
      IntraOpThreadsGuard::is_available());
  for (int round = 0; round < 100; ++round) {
    std::vector<int> runs(4);
    pool.run(3, [&](std::size_t i) {
      const pthread_t now = ::pthread_self();
      runs[i] +=
          pthread_equal(now, own[i]) != 0 || pthread_equal(now, caller) != 0
              ? 1
              : 100;
    });
    ASSERT_EQ(runs, (std::vector<int>{1, 1, 1, 0}));
  }
}

std::atomic<bool> is_held = false;
std::atomic<bool> is_stopped = false;

void hold(int /*signal*/) {
  is_stopped = true;
  while (is_held) {
    ::sched_yield();
  }
}

TEST(WorkerPool, NobodyWaitsForAThreadThatHasNotBegun) {
  if (!IntraOpThreadsGuard::is_available()) {
    GTEST_SKIP() << "this LibTorch keeps no number per thread";
  }
  WorkerPool pool(2, 1);
  const pthread_t worker = threads_of(pool)[1];
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = &hold;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  is_held = true;
  ASSERT_EQ(::pthread_kill(worker, SIGUSR1), 0);
  while (!is_stopped) {
    ::sched_yield();
  }
  std::vector<std::thread::id> ran(2);
  pool.run(2, [&](std::size_t i) { ran[i] = std::this_thread::get_id(); });
  is_held = false;
  EXPECT_EQ(ran[1], std::this_thread::get_id());
  EXPECT_NE(threads_of(pool)[1], ::pthread_self());
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(WorkerPool, ErrorsStayWithTheirTask) {
  WorkerPool pool(3, 1);
  const auto errors = pool.run(3, [](std::size_t i) {
    if (i == 1) {
      throw std::runtime_error("one");
    }
  });
  EXPECT_EQ(errors[0], nullptr);
  EXPECT_NE(errors[1], nullptr);
  EXPECT_EQ(errors[2], nullptr);
  EXPECT_EQ(pool.run(3, [](std::size_t) {})[1], nullptr);
}

TEST(WorkerPool, TheCallersStateIsAsItWas) {
  WorkerPool pool(2, 1);
  const torch::AutoGradMode with_gradients(true);
  const auto errors = pool.run(2, [](std::size_t) {
    at::GradMode::set_enabled(false);
    throw std::runtime_error("in the middle");
  });
  EXPECT_NE(errors[0], nullptr);
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(WorkerPool, CallersTakeTurns) {
  WorkerPool pool(2, 1);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto job = [&] {
    for (int i = 0; i < 50; ++i) {
      pool.run(2, [&](std::size_t) {
        most = std::max(most.load(), ++inside);
        --inside;
      });
    }
  };
  std::thread other(job);
  job();
  other.join();
  EXPECT_LE(most.load(), 2);
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
