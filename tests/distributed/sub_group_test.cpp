// SPDX-License-Identifier: BSD-3-Clause
//
// Groups of some ranks of another group. Ranks are threads.
#include <chrono>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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
  EXPECT_THAT(
      errors[2],
      HasSubstr("[dist.new_group] rank 2 waited 0.2 s for ranks 1, 3"));
  EXPECT_THAT(errors[2], Not(HasSubstr("did not start")));
}

// All have started: it is the wrapper that some rank does not make.
TEST(SubGroup, ARankThatDoesNotWrapItsModelIsNamed) {
  std::promise<void> has_given_up;
  const auto end = has_given_up.get_future().share();
  const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
    const auto pair = group.new_group({0, 1}, std::chrono::seconds(1));
    if (group.rank() == 1) {
      end.wait();
      return;
    }
    try {
      DistributedDataParallel model(
          torch::nn::Linear(3, 2),
          {.process_group = pair});
    } catch (...) {
      has_given_up.set_value();
      throw;
    }
  });
  EXPECT_THAT(
      errors[0],
      AllOf(
          HasSubstr("[dist.ddp] rank 0 waited 1.0 s for rank 1"),
          HasSubstr("they have ended, or do something else")));
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

} // namespace
} // namespace lockstep::dist
