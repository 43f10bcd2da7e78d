// SPDX-License-Identifier: BSD-3-Clause
//
// What single ranks send to each other, and the barrier that names who does not
// come. Ranks are threads.
#include <array>
#include <chrono>
#include <latch>
#include <memory>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/process_group.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array<const char*, 2> kBackends{"gloo", "shm"};

class PointToPoint : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> run(
      int size,
      const std::function<void(const ProcessGroup&)>& body) {
    return run_thread_ranks(size, body, {.backend = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, PointToPoint, testing::ValuesIn(kBackends));

// Of more than a message of shared memory holds, and of nothing.
TEST_P(PointToPoint, ARankSendsToAnother) {
  const auto errors = run(3, [](const ProcessGroup& group) {
    for (const std::int64_t size : {4L, 700'001L, 0L}) {
      const at::Tensor numbers = torch::arange(size);
      at::Tensor tensor = torch::zeros({size}, at::kLong);
      if (group.rank() == 0) {
        group.send(numbers, 2, 7);
      } else if (group.rank() == 2) {
        group.recv(tensor, 0, 7);
        EXPECT_TRUE(torch::equal(tensor, numbers));
      }
      group.barrier();
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(PointToPoint, WhatIsSentGoesBesideCollectives) {
  const auto errors = run(2, [](const ProcessGroup& group) {
    const int other = 1 - group.rank();
    for (int i = 0; i < 50; ++i) {
      at::Tensor mine = torch::full({3}, 10 * i + group.rank());
      at::Tensor theirs = torch::zeros({3}, at::kLong);
      if (group.rank() == 0) {
        group.send(mine, other);
        group.recv(theirs, other, i);
      } else {
        group.recv(theirs, other);
        group.send(mine, other, i);
      }
      EXPECT_EQ(theirs[2].item<int>(), 10 * i + other);
      at::Tensor sum = mine.clone();
      group.all_reduce(sum);
      EXPECT_TRUE(torch::equal(sum, mine + theirs));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(PointToPoint, ARankFromWhichNothingCanComeIsNamed) {
  const auto errors = run(2, [](const ProcessGroup& group) {
    if (group.rank() == 0) {
      at::Tensor tensor = torch::zeros({1});
      group.recv(tensor, 1);
    }
  });
  EXPECT_THAT(errors[0], HasSubstr("recv of rank 0 of 2 did not end"));
  EXPECT_THAT(errors[1], IsEmpty());
}

TEST_P(PointToPoint, OneRankGathersAndGivesOut) {
  const auto each = [](const ProcessGroup& group) {
    const auto all = group.gather(torch::full({2}, group.rank()), 1);
    EXPECT_EQ(all.size(), group.rank() == 1 ? 3U : 0U);
    if (group.rank() == 1) {
      EXPECT_EQ(all[2][0].item<int>(), 2);
    }
    std::vector<at::Tensor> parts;
    if (group.rank() == 2) {
      parts = {torch::ones({1}), torch::ones({1}) * 2, torch::ones({1}) * 3};
    }
    at::Tensor part = torch::zeros({1});
    group.scatter(part, parts, 2);
    EXPECT_EQ(part.item<int>(), group.rank() + 1);
  };
  EXPECT_THAT(run(3, each), Each(IsEmpty()));
}

TEST_P(PointToPoint, WhatCannotBeIsRefused) {
  const auto errors = run(2, [](const ProcessGroup& group) {
    at::Tensor tensor = torch::zeros({1});
    EXPECT_THROW(group.send(tensor, group.rank()), Exception);
    EXPECT_THROW(group.send(tensor, 2), Exception);
    EXPECT_THROW(group.recv(tensor, -1), Exception);
    group.scatter(tensor, {tensor, tensor}, group.rank() == 0 ? 1 : 0);
  });
  EXPECT_THAT(errors, Each(HasSubstr("gives 2 tensors, expected 0")));
}

std::vector<std::string> over(
    const char* backend,
    int size,
    const std::function<void(const ProcessGroup&)>& body) {
  return run_thread_ranks(size, body, {.backend = backend});
}

TEST(DistributedTest, test_monitored_barrier_gloo) {
  for (const char* backend : kBackends) {
    const auto errors = over(backend, 3, [](const ProcessGroup& group) {
      for (int i = 0; i < 3; ++i) {
        group.monitored_barrier();
      }
      group.monitored_barrier(std::chrono::seconds(20), true);
    });
    EXPECT_THAT(errors, Each(IsEmpty())) << backend;
  }
}

TEST(DistributedTest, test_monitored_barrier_gloo_subgroup) {
  for (const char* backend : kBackends) {
    std::latch tried(1);
    const auto errors = over(backend, 3, [&](const ProcessGroup& group) {
      const ProcessGroup pair = group.new_group({0, 1});
      if (group.rank() != 0) {
        tried.wait(); // a group that is gone is another error
        return;
      }
      const std::shared_ptr<void> end(nullptr, [&](void*) {
        tried.count_down();
      });
      pair.monitored_barrier(std::chrono::milliseconds(100));
    });
    EXPECT_THAT(
        errors[0],
        HasSubstr("Rank 1 failed to pass monitoredBarrier in 100 ms"));
  }
}

/// Ranks 1 and up to the last but one do not come.
std::vector<std::string> lonely_barrier(
    const char* backend,
    bool wait_all_ranks) {
  return over(backend, 4, [&](const ProcessGroup& group) {
    group.barrier();
    if (group.rank() == 0 || group.rank() == 3) {
      group.monitored_barrier(std::chrono::milliseconds(300), wait_all_ranks);
    }
  });
}

TEST(DistributedTest, test_monitored_barrier_failure_order) {
  for (const char* backend : kBackends) {
    const auto errors = lonely_barrier(backend, false);
    EXPECT_THAT(
        errors[0],
        AllOf(
            HasSubstr("[dist.monitored_barrier]"),
            HasSubstr("Rank 1 failed to pass monitoredBarrier in 300 ms")));
    EXPECT_THAT(errors[3], HasSubstr("rank 0"));
  }
}

TEST(DistributedTest, test_monitored_barrier_wait_all_ranks) {
  for (const char* backend : kBackends) {
    EXPECT_THAT(
        lonely_barrier(backend, true)[0],
        HasSubstr("Ranks 1, 2 failed to pass monitoredBarrier in 300 ms"));
  }
}

TEST(DistributedTest, test_monitored_barrier_gloo_rank_0_timeout) {
  for (const char* backend : kBackends) {
    const auto errors = over(backend, 2, [](const ProcessGroup& group) {
      if (group.rank() == 1) {
        group.monitored_barrier(std::chrono::milliseconds(100));
      }
    });
    EXPECT_THAT(errors[1], HasSubstr("Rank 1 successfully reached"));
  }
}

/// All but rank 1 go on to a barrier after a collective that hangs.
void expect_hang_is_found(bool wait_all_ranks) {
  const auto errors = run_thread_ranks(
      3,
      [&](const ProcessGroup& group) {
        at::Tensor tensor = torch::ones({2});
        group.all_reduce(tensor);
        if (group.rank() == 1) {
          return;
        }
        group.monitored_barrier(std::chrono::milliseconds(200), wait_all_ranks);
        group.all_reduce(tensor);
      },
      {.backend = "gloo", .timeout = std::chrono::seconds(30)});
  EXPECT_THAT(errors[0], HasSubstr(" 1 failed to pass monitoredBarrier"));
}

TEST(DistributedTest, test_monitored_barrier_allreduce_hang) {
  expect_hang_is_found(false);
}

TEST(DistributedTest, test_monitored_barrier_allreduce_hang_wait_all_ranks) {
  expect_hang_is_found(true);
}

} // namespace
} // namespace lockstep::dist
