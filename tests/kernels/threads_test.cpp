// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/threads.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace lockstep::kernels {
namespace {

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(3);
  }
  void TearDown() override {
    at::set_num_threads(before_);
  }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(Threads, EachStepIsDoneOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 4, 100, 70'000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
    in_threads(count, 2, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        ++done[static_cast<std::size_t>(i)];
      }
    });
    for (const std::atomic<int>& times : done) {
      EXPECT_EQ(times, 1) << count;
    }
  }
}

// `at::parallel_for` would be one here.
TEST_F(Threads, AreSeveral) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  in_threads(300, 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 3U);
}

TEST_F(Threads, OneDoesWhatIsNotWorthMore) {
  int calls = 0;
  in_threads(8, 8, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(end - begin, 8);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST_F(Threads, ErrorsReachTheCaller) {
  EXPECT_THROW(
      in_threads(
          300,
          1,
          [](std::int64_t begin, std::int64_t) {
            if (begin > 0) {
              throw std::out_of_range("second range");
            }
          }),
      std::out_of_range);
}

} // namespace
} // namespace lockstep::kernels
