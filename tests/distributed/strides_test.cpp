// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors whose numbers lie otherwise in memory than in order, and otherwise on
// another rank. Ranks are threads.
#include <array>
#include <chrono>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::IsEmpty;

/// The same numbers, column by column in memory.
at::Tensor by_columns(const at::Tensor& tensor) {
  return tensor.t().contiguous().t();
}

at::Tensor numbers() {
  return torch::arange(6.0).view({2, 3});
}

class Strides : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> errors_of(
      int ranks,
      const std::function<void(const ProcessGroup&)>& body) {
    return run_thread_ranks(
        ranks,
        body,
        {.backend = GetParam(), .timeout = std::chrono::minutes(1)});
  }
};

INSTANTIATE_TEST_SUITE_P(
    Backends,
    Strides,
    testing::Values("gloo", "shm"),
    [](const auto& param) { return std::string(param.param); });

TEST_P(Strides, MayBeOthersOnAnotherRank) {
  const auto errors = errors_of(2, [](const ProcessGroup& group) {
    const bool is_first = group.rank() == 0;
    at::Tensor sum = is_first ? numbers() : by_columns(numbers());
    group.all_reduce(sum);
    EXPECT_TRUE(torch::equal(sum, 2 * numbers())) << sum;

    at::Tensor given = is_first ? numbers() : by_columns(torch::zeros({2, 3}));
    group.broadcast(given);
    EXPECT_TRUE(torch::equal(given, numbers())) << given;

    at::Tensor part = by_columns(torch::zeros({2, 3}));
    std::vector<at::Tensor> parts;
    if (is_first) {
      parts = {by_columns(numbers()), by_columns(numbers() + 10)};
    }
    group.scatter(part, parts);
    EXPECT_TRUE(torch::equal(part, numbers() + 10 * group.rank())) << part;

    const at::Tensor joined = group.reduce_scatter(
        is_first ? std::vector{by_columns(numbers()), numbers()}
                 : std::vector{numbers(), by_columns(numbers() + 10)});
    EXPECT_TRUE(torch::equal(joined, 2 * numbers() + 10 * group.rank()))
        << joined;

    at::Tensor letter = by_columns(is_first ? numbers() : 0 * numbers());
    if (is_first) {
      group.send(letter, 1);
    } else {
      group.recv(letter, 0);
    }
    EXPECT_TRUE(torch::equal(letter, numbers())) << letter;
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(Strides, LeaveWhatLiesBetweenAsItIs) {
  const auto errors = errors_of(2, [](const ProcessGroup& group) {
    const at::Tensor whole = torch::arange(10.0);
    at::Tensor even = whole.slice(0, 0, 10, 2);
    group.all_reduce(even);
    EXPECT_TRUE(torch::equal(even, torch::arange(0.0, 20.0, 4))) << even;
    EXPECT_TRUE(
        torch::equal(whole.slice(0, 1, 10, 2), torch::arange(1.0, 11.0, 2)))
        << whole;
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(Strides, AreOfNoMatterToARankAlone) {
  const auto errors = errors_of(1, [](const ProcessGroup& group) {
    EXPECT_TRUE(
        torch::equal(group.reduce_scatter({by_columns(numbers())}), numbers()));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Such a tensor cannot hold what comes; nothing is written over its end.
TEST_P(Strides, OfNoStepAreRefused) {
  const auto errors = errors_of(2, [](const ProcessGroup& group) {
    at::Tensor same = torch::ones({1}).expand({100'000});
    try {
      group.all_reduce(same);
      ADD_FAILURE();
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().detail, "E_COLLECTIVE_ARGUMENT");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Gloo finds it in its own thread.
TEST_P(Strides, AreNotAllThatCanBeWrong) {
  const auto errors = errors_of(2, [](const ProcessGroup& group) {
    at::Tensor odd = torch::ones({4}, at::kUInt16);
    try {
      group.all_reduce(odd);
      ADD_FAILURE();
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
      EXPECT_EQ(error.error().detail, "E_COLLECTIVE_ARGUMENT");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep::dist
