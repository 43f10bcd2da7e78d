// SPDX-License-Identifier: BSD-3-Clause
//
// The backend for ranks of one host. Ranks are threads.
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/shell.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const InitOptions kShm{.backend = "shm", .timeout = std::chrono::minutes(1)};

// More than a box holds, and no multiple of anything.
constexpr std::int64_t kLarge = 700'001;

at::Tensor numbers(int rank, std::int64_t size, at::ScalarType dtype) {
  const at::Tensor small = torch::arange(size).remainder(7) + rank;
  return dtype == at::kBool ? small.remainder(3).eq(0) : small.to(dtype);
}

class RanksOfShm : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, RanksOfShm, testing::Values(1, 2, 3, 4));

void expect_sum(
    const ProcessGroup& group,
    std::int64_t size,
    at::ScalarType dtype) {
  at::Tensor sum = numbers(0, size, dtype);
  for (int rank = 1; rank < group.size(); ++rank) {
    sum = sum + numbers(rank, size, dtype);
  }
  at::Tensor mine = numbers(group.rank(), size, dtype);
  group.all_reduce(mine);
  EXPECT_TRUE(torch::equal(mine, sum)) << size << " of " << dtype;
}

void expect_gathered(
    const ProcessGroup& group,
    std::int64_t size,
    at::ScalarType dtype) {
  const auto all = group.all_gather(numbers(group.rank(), size, dtype));
  for (int rank = 0; rank < group.size(); ++rank) {
    EXPECT_TRUE(torch::equal(
        all[static_cast<std::size_t>(rank)],
        numbers(rank, size, dtype)));
  }
}

void expect_broadcast(
    const ProcessGroup& group,
    std::int64_t size,
    at::ScalarType dtype) {
  for (int source = 0; source < group.size(); ++source) {
    at::Tensor mine = numbers(group.rank(), size, dtype);
    group.broadcast(mine, source);
    EXPECT_TRUE(torch::equal(mine, numbers(source, size, dtype)));
  }
}

// Rank r gives rank p the numbers of "rank" r + p.
void expect_scattered(
    const ProcessGroup& group,
    std::int64_t size,
    at::ScalarType dtype) {
  std::vector<at::Tensor> inputs;
  at::Tensor sum;
  for (int rank = 0; rank < group.size(); ++rank) {
    inputs.push_back(numbers(group.rank() + rank, size, dtype));
    const at::Tensor term = numbers(rank + group.rank(), size, dtype);
    sum = rank == 0 ? term : sum + term;
  }
  EXPECT_TRUE(torch::equal(group.reduce_scatter(inputs), sum));
}

TEST_P(RanksOfShm, CollectivesGiveWhatPlainCodeGives) {
  const auto errors = run_thread_ranks(
      GetParam(),
      [](const ProcessGroup& group) {
        EXPECT_EQ(group.backend(), "shm");
        for (const auto dtype :
             {at::kFloat,
              at::kDouble,
              at::kHalf,
              at::kBFloat16,
              at::kInt,
              at::kLong,
              at::kByte,
              at::kChar,
              at::kBool}) {
          for (const std::int64_t size : {0L, 1L, 17L, 1000L, kLarge}) {
            expect_sum(group, size, dtype);
            expect_gathered(group, size, dtype);
            expect_broadcast(group, size, dtype);
            expect_scattered(group, size, dtype);
          }
          group.barrier();
        }
      },
      kShm);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Floats whose sum depends on the order.
at::Tensor uneven(int rank, std::int64_t size) {
  return torch::rand({size}, at::make_generator<at::CPUGeneratorImpl>(rank + 1))
      .pow(8);
}

TEST_P(RanksOfShm, SumsAreInTheOrderOfTheRanksToTheBit) {
  const auto errors = run_thread_ranks(
      GetParam(),
      [](const ProcessGroup& group) {
        for (const std::int64_t size : {1L, 63L, 4097L, kLarge}) {
          at::Tensor sum = uneven(0, size);
          for (int rank = 1; rank < group.size(); ++rank) {
            sum += uneven(rank, size);
          }
          at::Tensor mine = uneven(group.rank(), size);
          group.all_reduce(mine);
          EXPECT_TRUE(torch::equal(mine, sum)) << size;
        }
      },
      kShm);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RanksOfShm, ReductionsAreThoseOfThePlainOperations) {
  const auto errors = run_thread_ranks(
      GetParam(),
      [](const ProcessGroup& group) {
        at::Tensor product = uneven(0, 100);
        at::Tensor least = product;
        at::Tensor most = product;
        for (int rank = 1; rank < group.size(); ++rank) {
          const at::Tensor term = uneven(rank, 100);
          product = product * term;
          least = at::minimum(least, term);
          most = at::maximum(most, term);
        }
        const auto reduced = [&](ReduceOp op) {
          at::Tensor mine = uneven(group.rank(), 100);
          group.all_reduce(mine, op);
          return mine;
        };
        EXPECT_TRUE(torch::equal(reduced(ReduceOp::kProduct), product));
        EXPECT_TRUE(torch::equal(reduced(ReduceOp::kMin), least));
        EXPECT_TRUE(torch::equal(reduced(ReduceOp::kMax), most));
      },
      kShm);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Shm, TensorsNeedNotBeContiguous) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        const at::Tensor whole = torch::zeros({6, 4});
        at::Tensor turned = whole.t(); // its memory runs the other way
        if (group.rank() == 0) {
          turned.copy_(torch::arange(24).reshape({4, 6}));
        }
        group.broadcast(turned);
        at::Tensor sparse = turned.slice(1, 0, 6, 2);
        group.all_reduce(sparse);
        const auto all = group.all_gather(sparse);
        const at::Tensor expected = torch::arange(24.0).reshape({4, 6});
        EXPECT_TRUE(
            torch::equal(turned.slice(1, 1, 6, 2), expected.slice(1, 1, 6, 2)));
        EXPECT_TRUE(torch::equal(sparse, 2 * expected.slice(1, 0, 6, 2)));
        EXPECT_TRUE(torch::equal(all[0], sparse));
      },
      kShm);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Shm, GroupsDoNotMeetEachOther) {
  std::vector<std::jthread> jobs;
  jobs.reserve(3);
  for (int job = 0; job < 3; ++job) {
    jobs.emplace_back([job] {
      const auto errors = run_thread_ranks(
          2,
          [job](const ProcessGroup& group) {
            for (int i = 0; i < 200; ++i) {
              at::Tensor sum = torch::full({10}, job + group.rank());
              group.all_reduce(sum);
              EXPECT_TRUE(torch::equal(sum, torch::full({10}, 2 * job + 1)));
            }
          },
          kShm);
      EXPECT_THAT(errors, Each(IsEmpty()));
    });
  }
}

// Parameters after some steps, on each rank.
std::vector<at::Tensor> trained(
    const ProcessGroup& group,
    const DistributedDataParallelOptions& options) {
  torch::nn::Sequential net(
      torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 8).sparse(true)),
      torch::nn::Linear(8, 4),
      torch::nn::BatchNorm1d(4),
      torch::nn::Linear(4, 1));
  {
    // Ranks that are threads share the generator: its numbers would differ.
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      parameter.copy_(
          torch::arange(parameter.numel()).view_as(parameter).sin());
    }
  }
  DistributedDataParallel model(*net, options);
  torch::optim::SGD sgd(model->parameters(), 0.1);
  for (int step = 0; step < 6; ++step) {
    model->zero_grad();
    const at::Tensor words = torch::arange(8) + 3 * group.rank() + step;
    model->forward(words.remainder(20)).square().mean().backward();
    sgd.step();
  }
  return net->parameters();
}

TEST(Shm, TrainingHasTheBitsOfGloo) {
  std::vector<at::Tensor> parameters;
  for (const char* backend : {"gloo", "shm"}) {
    const auto errors = run_thread_ranks(
        2,
        [&](const ProcessGroup& group) {
          const auto mine = trained(group, {.process_group = group});
          if (group.rank() == 0) {
            parameters.insert(parameters.end(), mine.begin(), mine.end());
          }
        },
        {.backend = backend});
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
  ASSERT_EQ(parameters.size(), 14);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_TRUE(torch::equal(parameters[i], parameters[i + 7])) << i;
  }
}

// Gloo's three ranks add in an order that depends on the place in a bucket.
TEST(Shm, BitsDoNotDependOnTheBuckets) {
  const auto errors = run_thread_ranks(
      3,
      [](const ProcessGroup& group) {
        const auto whole = trained(group, {.process_group = group});
        const auto parts =
            trained(group, {.process_group = group, .bucket_cap_mb = 0.0001});
        for (std::size_t i = 0; i < whole.size(); ++i) {
          EXPECT_TRUE(torch::equal(whole[i], parts[i])) << i;
        }
      },
      kShm);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Shm, NoRankWaitsForOneThatDoesSomethingElse) {
  const auto errors = run_thread_ranks(
      3,
      [](const ProcessGroup& group) {
        at::Tensor tensor = torch::zeros({group.rank() == 2 ? 5 : 4});
        group.all_reduce(tensor);
      },
      kShm);
  EXPECT_THAT(errors, Each(HasSubstr("did not end")));
  EXPECT_THAT(
      errors,
      testing::Contains(HasSubstr("rank 2 does something else")));
}

TEST(Shm, ARankThatLeavesIsNamed) {
  const auto errors = run_thread_ranks(
      3,
      [](const ProcessGroup& group) {
        group.barrier();
        if (group.rank() != 1) {
          group.barrier();
        }
      },
      kShm);
  EXPECT_THAT(
      errors,
      ElementsAre(
          HasSubstr("rank 1 has left the group"),
          "",
          HasSubstr("rank 1 has left the group")));
}

// After a failure nothing is waited for any more.
TEST(Shm, ABrokenGroupSaysSoAgain) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        if (group.rank() == 0) {
          EXPECT_THROW(group.barrier(), Exception);
          group.barrier();
        }
      },
      kShm);
  EXPECT_THAT(errors.front(), HasSubstr("rank 1 has left the group"));
}

// Descriptors and mappings of this process.
std::size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(Shm, NothingIsLeftBehind) {
  const auto use = [] {
    const auto errors = run_thread_ranks(
        2,
        [](const ProcessGroup& group) {
          group.barrier();
          EXPECT_THAT(
              test::file_text("/proc/self/maps"),
              HasSubstr("memfd:lockstep"));
        },
        kShm);
    EXPECT_THAT(errors, Each(IsEmpty()));
  };
  use();
  const std::size_t before = descriptors();
  use();
  EXPECT_EQ(descriptors(), before);
  EXPECT_THAT(
      test::file_text("/proc/self/maps"),
      testing::Not(HasSubstr("memfd:lockstep")));
}

} // namespace
} // namespace lockstep::dist
