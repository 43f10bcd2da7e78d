// SPDX-License-Identifier: BSD-3-Clause
//
// Groups of some ranks, values between ranks, and what single ranks say to each
// other.
#include "lockstep/dist/objects.h"

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/dist/distributed_data_parallel.h"
#include "lockstep/dist/thread_ranks.h"
#include "lockstep/tensor/bridge.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array<const char*, 2> kBackends{"gloo", "shm"};

TEST(SubGroup, HasItsOwnRanksAndCollectives) {
  const auto errors = run_thread_ranks(4, [](const ProcessGroup& group) {
    const ProcessGroup odd = group.new_group({3, 1});
    const ProcessGroup even = group.new_group({0, 2});
    const bool is_odd = group.rank() % 2 == 1;
    EXPECT_EQ(static_cast<bool>(odd), is_odd);
    EXPECT_EQ(static_cast<bool>(even), !is_odd);
    const ProcessGroup& own = is_odd ? odd : even;
    EXPECT_EQ(own.size(), 2);
    EXPECT_EQ(own.rank(), group.rank() / 2);
    at::Tensor sum = torch::full({2}, group.rank());
    own.all_reduce(sum);
    EXPECT_EQ(sum[0].item<int>(), is_odd ? 4 : 2);
    // The whole group works beside them, and one of a group of a group.
    at::Tensor all = torch::ones({1});
    group.all_reduce(all);
    EXPECT_EQ(all.item<int>(), 4);
    const ProcessGroup alone = own.new_group({1});
    EXPECT_EQ(static_cast<bool>(alone), own.rank() == 1);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Taken for no group, it would be the default group where there is one.
TEST(SubGroup, IsAnErrorOnARankOutside) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const ProcessGroup one = group.new_group({0});
    if (one) {
      return;
    }
    const auto net = std::make_shared<torch::nn::LinearImpl>(2, 2);
    using Wrapper = DistributedDataParallel<torch::nn::LinearImpl>;
    for (const auto& use : std::vector<std::function<void()>>{
             [&] { static_cast<void>(one.size()); },
             [&] { Wrapper wrapper(net, {.process_group = one}); }}) {
      try {
        use();
        ADD_FAILURE();
      } catch (const Exception& error) {
        EXPECT_EQ(error.error().detail, "E_SUB_GROUP");
        EXPECT_EQ(error.error().message, "this rank is not in the group");
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// To the ranks of a group it does not matter who of the job has ended.
TEST(SubGroup, ARankOutsideMayHaveEnded) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    if (group.rank() == 1) { // rank 0 looks around meanwhile
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    const ProcessGroup pair = group.new_group({0, 1});
    if (pair) {
      pair.barrier();
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SubGroup, RanksThatDoNotComeAreNamedAsRanksOfTheJob) {
  std::promise<void> has_given_up;
  const auto end = has_given_up.get_future().share();
  const auto errors = run_thread_ranks(4, [&](const ProcessGroup& group) {
    if (group.rank() != 2) {
      end.wait();
      return;
    }
    try {
      static_cast<void>(
          group.new_group({1, 2, 3}, std::chrono::milliseconds(200)));
    } catch (...) {
      has_given_up.set_value();
      throw;
    }
  });
  EXPECT_THAT(errors[2], HasSubstr("rank 2 waited 0.2 s for ranks 1, 3"));
}

// Python's names of both are "1".
TEST(SubGroup, GroupsOfAGroupCountTheirOwnCollectives) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const ProcessGroup pair = group.new_group({0, 1});
    const ProcessGroup nested = pair.new_group({0, 1});
    at::Tensor sum = torch::ones({2});
    pair.all_reduce(sum);
    if (group.rank() == 1) { // rank 0 finds the other's collective first
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    nested.barrier();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SubGroup, FailsForItsOwnReason) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    const ProcessGroup first = group.new_group({0, 1});
    const ProcessGroup second = group.new_group({0, 2});
    if (group.rank() == 1) {
      return;
    }
    if (first) {
      EXPECT_THROW(first.barrier(), Exception);
    }
    at::Tensor mine = torch::ones({2 + group.rank()});
    second.all_reduce(mine);
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 2 does something else"));
  EXPECT_THAT(errors[2], HasSubstr("rank 0 does something else"));
}

TEST(SubGroup, AModelIsTrainedByItsRanks) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    const ProcessGroup pair = group.new_group({0, 2});
    if (!pair) {
      return;
    }
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = pair});
    model->forward(torch::full({1, 3}, group.rank() + 1.0)).sum().backward();
    EXPECT_TRUE(torch::equal(net->weight.grad(), torch::full({1, 3}, 2.0)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SubGroup, RanksThatCannotBeAreRefusedInPythonsWords) {
  const auto with = [](const std::vector<int>& ranks) {
    return run_thread_ranks(2, [&](const ProcessGroup& group) {
      static_cast<void>(group.new_group(ranks));
    });
  };
  EXPECT_THAT(
      with({0, 2}),
      Each(HasSubstr("Rank 2 is out of range. Valid ranks are 0 to 1 "
                     "(world_size=2)")));
  EXPECT_THAT(
      with({1, 0, 1}),
      Each(HasSubstr("ranks list must not contain duplicate entries, got [0, "
                     "1, 1]")));
}

ckpt::Value value_of(int rank) {
  return ckpt::Value::dict(
      {{"rank", rank},
       {"name", std::string(static_cast<std::size_t>(rank), 'x')}});
}

int rank_in(const ckpt::Value& value) {
  EXPECT_EQ(
      value.find("name")->as_string()->size(),
      static_cast<std::size_t>(*value.find("rank")->as_int()));
  return static_cast<int>(*value.find("rank")->as_int());
}

TEST(Objects, AreGatheredAndHandedOut) {
  const auto errors = run_thread_ranks(3, [](const ProcessGroup& group) {
    std::vector<int> ranks;
    for (const auto& value : all_gather_object(group, value_of(group.rank()))) {
      ranks.push_back(rank_in(value));
    }
    EXPECT_THAT(ranks, ElementsAre(0, 1, 2));
    const auto gathered = gather_object(group, value_of(group.rank()), 1);
    ASSERT_EQ(gathered.size(), group.rank() == 1 ? 3 : 0);
    if (group.rank() == 1) {
      EXPECT_EQ(rank_in(gathered[2]), 2);
    }
    const auto given = broadcast_object(group, value_of(group.rank()), 2);
    EXPECT_EQ(rank_in(given), 2);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Objects, MayHoldTensors) {
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    const auto own = ckpt::Value::dict(
        {{"weights", to_value(torch::full({2, 3}, group.rank() + 0.5))}});
    const auto all = all_gather_object(group, own);
    const at::Tensor of_one = to_tensor(*all[1].find("weights")->as_tensor());
    EXPECT_TRUE(torch::equal(of_one, torch::full({2, 3}, 1.5)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

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
    const auto errors = over(backend, 3, [](const ProcessGroup& group) {
      const ProcessGroup pair = group.new_group({0, 1});
      if (pair && pair.rank() == 0) {
        pair.monitored_barrier(std::chrono::milliseconds(100));
      }
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
