// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/process_group.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

class RankCount : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, RankCount, testing::Values(1, 2, 3, 5));

TEST_P(RankCount, CollectivesGiveWhatTheySay) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    at::Tensor mine = torch::full({3}, group.rank() + 1.0);
    group.all_reduce(mine);
    EXPECT_TRUE(torch::equal(mine, torch::full({3}, size * (size + 1) / 2.0)));

    at::Tensor least = torch::full({2}, group.rank());
    group.all_reduce(least, ReduceOp::kMin);
    EXPECT_EQ(least.sum().item<int>(), 0);

    at::Tensor given = torch::full({2}, group.rank());
    group.broadcast(given, size - 1);
    EXPECT_EQ(given[0].item<int>(), size - 1);

    const auto all = group.all_gather(torch::full({2}, group.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)][1].item<int>(), rank);
    }
    group.barrier();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, ReduceScatterGivesEachRankItsSum) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs;
    inputs.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      inputs.push_back(torch::full({2}, 10.0 * rank + group.rank()));
    }
    const double expected =
        10.0 * group.rank() * size + size * (size - 1) / 2.0;
    EXPECT_EQ(group.reduce_scatter(inputs)[1].item<double>(), expected);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, BytesOfDifferentSizesAreGathered) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    const std::vector<std::byte> mine(
        static_cast<std::size_t>(group.rank() * 3),
        static_cast<std::byte>(group.rank()));
    const auto all = group.all_gather_bytes(mine);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_EQ(
          all[rank],
          std::vector<std::byte>(rank * 3, static_cast<std::byte>(rank)));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, SumsAreInTheOrderOfTheRanks) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    std::vector<double> values{0.1 * (group.rank() + 1), 1.0};
    double expected = 0.0;
    for (int rank = 0; rank < size; ++rank) {
      expected += 0.1 * (rank + 1);
    }
    group.sum(values);
    EXPECT_EQ(values[0], expected); // to the last bit
    EXPECT_EQ(values[1], size);
    EXPECT_EQ(group.any(group.rank() == size - 1), true);
    EXPECT_FALSE(group.any(false));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ProcessGroup, AProcessAloneLeavesEverythingAsItIs) {
  const ProcessGroup alone;
  EXPECT_FALSE(alone);
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.place(), RankInfo());
  EXPECT_EQ(alone.backend(), "");
  const at::Tensor tensor = torch::tensor({1.5, -2.0});
  at::Tensor given = tensor.clone();
  alone.all_reduce(given, ReduceOp::kMax);
  alone.broadcast(given);
  alone.barrier();
  alone.monitored_barrier();
  EXPECT_TRUE(torch::equal(given, tensor));
  for (const auto& all : {alone.all_gather(tensor), alone.gather(tensor)}) {
    ASSERT_EQ(all.size(), 1U);
    EXPECT_TRUE(torch::equal(all.front(), tensor));
    EXPECT_FALSE(all.front().is_alias_of(tensor));
  }
  EXPECT_TRUE(torch::equal(alone.reduce_scatter({tensor}), tensor));
  alone.scatter(given, {tensor + 1});
  EXPECT_TRUE(torch::equal(given, tensor + 1));
  std::vector<double> numbers{1.5, 2.0};
  alone.sum(numbers);
  EXPECT_THAT(numbers, testing::ElementsAre(1.5, 2.0));
  EXPECT_TRUE(alone.any(true));
  EXPECT_FALSE(alone.any(false));
  const std::vector<std::byte> bytes{std::byte{7}};
  EXPECT_THAT(alone.all_gather_bytes(bytes), testing::ElementsAre(bytes));
  EXPECT_EQ(alone.allocate_tensor(3).numel(), 3);
  EXPECT_EQ(alone.new_group({0}).size(), 1);
  EXPECT_EQ(broadcast_object(alone, ckpt::Value("x")).text(), "x");
  EXPECT_EQ(gather_object(alone, ckpt::Value("x")).size(), 1U);
}

TEST(ProcessGroup, AProcessAloneHasNoOtherRanks) {
  const ProcessGroup alone;
  at::Tensor tensor = torch::ones({1});
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const Exception& error) {
      return error.error().detail;
    }
    return std::string("no error");
  };
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { alone.broadcast(tensor, 1); },
           [&] { alone.send(tensor, 1); },
           [&] { alone.recv(tensor, 0); },
           [&] { static_cast<void>(alone.gather(tensor, 1)); }}) {
    EXPECT_EQ(refused(call), "E_COLLECTIVE_ARGUMENT");
  }
  EXPECT_EQ(
      refused([&] { static_cast<void>(alone.new_group({1})); }),
      "E_SUB_GROUP");
}

TEST(ProcessGroup, ACollectiveThatTheOthersLeaveSaysWhich) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        group.barrier();
        if (group.rank() == 0) {
          at::Tensor lonely = torch::ones({2});
          group.all_reduce(lonely);
        }
      },
      {.timeout = std::chrono::milliseconds(500)});
  EXPECT_THAT(
      errors[0],
      AllOf(
          HasSubstr("[dist.all_reduce]"),
          HasSubstr("collective 2 (all_reduce) of rank 0 of 2 did not end"),
          HasSubstr("rank 1 has left the job"),
          HasSubstr("its last collective: 1 (barrier)")));
  EXPECT_THAT(errors[1], IsEmpty());
}

// Gloo's work for it has no future.
TEST(ProcessGroup, AReduceScatterThatTheOthersLeaveSaysWho) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        group.barrier();
        if (group.rank() == 1) {
          const at::Tensor part = torch::ones({2});
          static_cast<void>(group.reduce_scatter({part, part}));
        }
      },
      {.timeout = std::chrono::seconds(60)});
  EXPECT_THAT(errors[0], IsEmpty());
  EXPECT_THAT(errors[1], HasSubstr("rank 0 has left the job"));
}

TEST(ProcessGroup, AnotherCallIsNamedOnBothSides) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        at::Tensor mine = torch::ones({2 + group.rank()});
        group.all_reduce(mine);
      },
      {.timeout = std::chrono::seconds(60)});
  EXPECT_THAT(
      errors[0],
      HasSubstr(
          "rank 1 does something else: its collective 1 (all_reduce) of Float "
          "(3,), here 1 (all_reduce) of Float (2,)"));
  EXPECT_THAT(
      errors[1],
      HasSubstr(
          "rank 0 does something else: its collective 1 (all_reduce) of Float "
          "(2,), here 1 (all_reduce) of Float (3,)"));
}

// Of torch::complex(1, rank + 1).conj(): LibTorch puts the sign off.
TEST(ProcessGroup, SignsThatAreDueAreSent) {
  for (const char* backend : {"gloo", "shm"}) {
    const auto errors = run_thread_ranks(
        2,
        [](const ProcessGroup& group) {
          const double own = group.rank() + 1.0;
          const auto number = [&] {
            return torch::complex(torch::ones({2}), torch::full({2}, own))
                .conj();
          };
          at::Tensor sum = number();
          group.all_reduce(sum);
          EXPECT_EQ(torch::imag(sum)[1].item<double>(), -3);
          at::Tensor first = number();
          group.broadcast(first, 0);
          EXPECT_EQ(torch::imag(first)[1].item<double>(), -1);
          at::Tensor negated = torch::_neg_view(torch::full({2}, own));
          group.all_reduce(negated);
          EXPECT_EQ(negated[1].item<double>(), -3);
          const auto all = group.all_gather(number());
          EXPECT_TRUE(all[1].is_complex());
          EXPECT_EQ(torch::imag(all[1])[1].item<double>(), -2);
        },
        {.backend = backend, .timeout = std::chrono::seconds(60)});
    EXPECT_THAT(errors, Each(IsEmpty())) << backend;
  }
}

// As in Python: what Gloo does not carry is refused, and the group works on.
TEST(ProcessGroup, ATypeThatIsRefusedEndsNoGroup) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        for (const auto type : {at::kShort, at::kComplexFloat}) {
          at::Tensor odd = torch::ones({2}, type);
          try {
            group.all_reduce(odd, ReduceOp::kMax);
            ADD_FAILURE() << "Gloo compares " << type;
          } catch (const Exception& error) {
            EXPECT_THAT(error.error().hint, HasSubstr("convert the tensor"));
          }
        }
        for (int i = 0; i < 3; ++i) {
          at::Tensor sum = torch::ones({2});
          group.all_reduce(sum);
          EXPECT_EQ(sum[0].item<double>(), 2);
        }
      },
      {.backend = "gloo", .timeout = std::chrono::seconds(60)});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

struct OtherCall {
  void (*run)(const ProcessGroup& group) = nullptr;
  const char* text = nullptr;
};

TEST(ProcessGroup, AnotherKindOfTheSameCallIsNamed) {
  for (const OtherCall& call : std::initializer_list<OtherCall>{
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              group.all_reduce(
                  mine,
                  group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax);
            },
            "1 (all_reduce max) of Float (2,), here 1 (all_reduce) of Float "
            "(2,)"},
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              group.broadcast(mine, group.rank());
            },
            "1 (broadcast from rank 1) of Float (2,), here 1 (broadcast) of "
            "Float (2,)"},
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              mine = group.rank() == 0 ? mine : mine.to_sparse();
              group.all_reduce(mine);
            },
            "1 (all_reduce) of sparse Float (2,), here 1 (all_reduce) of Float "
            "(2,)"}}) {
    const auto errors = run_thread_ranks(
        2,
        call.run,
        {.backend = "gloo", .timeout = std::chrono::seconds(60)});
    EXPECT_THAT(
        errors[0],
        HasSubstr(
            std::string("rank 1 does something else: its collective ") +
            call.text));
    EXPECT_THAT(errors[1], HasSubstr("rank 0 does something else"));
  }
}

} // namespace
} // namespace lockstep::dist
