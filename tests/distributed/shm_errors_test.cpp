// SPDX-License-Identifier: BSD-3-Clause
//
// What goes wrong on one rank is an error on the others, too, and never a wrong
// number. Ranks are threads.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/process_group.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> errors_of_two(
    const std::function<void(const ProcessGroup&)>& body) {
  return run_thread_ranks(
      2,
      body,
      {.backend = "shm", .timeout = std::chrono::minutes(1)});
}

Error refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const Exception& error) {
    return error.error();
  }
  return {};
}

TEST(ErrorOfARank, InAllArgumentsLeavesTheGroupAsItWas) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    at::Tensor odd = torch::zeros({2000}, at::kUInt16);
    at::Tensor complex = torch::zeros({4}, at::kComplexFloat);
    for (const auto& run : std::vector<std::function<void()>>{
             [&] { group.all_reduce(odd); },
             [&] { group.all_reduce(complex, ReduceOp::kMax); },
             [&] { group.broadcast(odd, 2); }}) {
      const Error error = refusal(run);
      EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.detail, "E_COLLECTIVE_ARGUMENT");
      EXPECT_THAT(error.message, Not(HasSubstr("did not end")));
    }
    at::Tensor sum = torch::full({3}, group.rank() + 1);
    group.all_reduce(sum);
    EXPECT_TRUE(torch::equal(sum, torch::full({3}, 3)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ErrorOfARank, InItsArgumentsEndsTheNextCallOfAll) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    at::Tensor tensor = torch::ones({4});
    if (group.rank() == 0) {
      EXPECT_EQ(
          refusal([&] { group.broadcast(tensor, 7); }).code,
          ErrorCode::kInvalidArgument);
    } else {
      group.broadcast(tensor, 0);
    }
    group.all_reduce(tensor);
  });
  EXPECT_THAT(errors, Each(HasSubstr("did not end")));
}

// The last thing that a call does is to write to the caller's tensor.
TEST(ErrorOfARank, AtTheEndOfACallLeavesTheGroupAsItWas) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    at::Tensor wide = torch::ones({1}).expand({4});
    at::Tensor plain = torch::ones({4});
    if (group.rank() == 0) {
      group.all_reduce(plain);
    } else {
      EXPECT_THAT(
          refusal([&] { group.all_reduce(wide); }).message,
          HasSubstr("written-to tensor"));
      plain.fill_(2);
    }
    group.all_reduce(plain);
    EXPECT_TRUE(torch::equal(plain, torch::full({4}, 4.0F)));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ErrorOfARank, ThatReducesOtherwiseIsSeenByAll) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    at::Tensor tensor = torch::ones({4});
    group.all_reduce(
        tensor,
        group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax);
  });
  EXPECT_THAT(errors, Each(HasSubstr("does something else")));
}

TEST(ErrorOfARank, WithAnotherSourceIsSeenByAll) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    at::Tensor tensor = torch::ones({4});
    group.broadcast(tensor, group.rank());
  });
  EXPECT_THAT(errors, Each(HasSubstr("does something else")));
}

// Both wait for a letter of another tag than the other sends.
TEST(ErrorOfARank, NeverNamesTheRankItself) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        at::Tensor tensor = torch::ones({2});
        if (group.rank() == 0) {
          group.send(tensor, 1, 1);
        } else {
          group.recv(tensor, 0, 2);
        }
      },
      {.backend = "shm", .timeout = std::chrono::seconds(1)});
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(
        errors[static_cast<std::size_t>(rank)],
        AnyOf(
            HasSubstr(format("rank {} did not come within 1 s", 1 - rank)),
            HasSubstr("another rank has given up waiting for this one")));
  }
}

TEST(ErrorOfARank, IsNoneForTensorsThatAreViewsOfOthersNumbers) {
  const auto errors = errors_of_two([](const ProcessGroup& group) {
    const at::Tensor numbers =
        torch::complex(torch::ones({3}), torch::full({3}, 2.0F));
    for (const at::Tensor& each : group.all_gather(numbers.conj())) {
      EXPECT_TRUE(torch::equal(each, numbers.conj()));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep::dist
