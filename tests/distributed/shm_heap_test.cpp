// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors in memory that the ranks of a host share. Ranks are threads.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/shell.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::Each;
using testing::IsEmpty;

const InitOptions kShared{.backend = "shm", .timeout = std::chrono::minutes(1)};

// More than is worth asking where it lies, and no multiple of anything.
constexpr std::int64_t kNumbers = 1'200'003;

// Numbers whose sum depends on the order of its terms.
at::Tensor uneven(int rank, std::int64_t size, at::ScalarType dtype) {
  return torch::rand({size}, at::make_generator<at::CPUGeneratorImpl>(rank + 1))
      .mul(rank + 1)
      .pow(4)
      .to(dtype);
}

at::Tensor in_order(int ranks, std::int64_t size, at::ScalarType dtype) {
  at::Tensor sum = uneven(0, size, dtype);
  for (int rank = 1; rank < ranks; ++rank) {
    sum = sum + uneven(rank, size, dtype);
  }
  return sum;
}

/// Whether the tensor begins in memory of this library, by what the system
/// says.
bool is_shared(const at::Tensor& tensor) {
  const auto place = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  for (const std::string& line :
       split(test::file_text("/proc/self/maps"), '\n')) {
    char* rest = nullptr;
    const std::uintptr_t begin = std::strtoul(line.c_str(), &rest, 16);
    if (*rest == '-' && begin <= place &&
        place < std::strtoul(rest + 1, nullptr, 16)) {
      return line.find("memfd:lockstep") != std::string::npos;
    }
  }
  return false;
}

class SharedTensors : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, SharedTensors, testing::Values(1, 2, 3, 4));

TEST_P(SharedTensors, AreSummedInTheOrderOfTheRanks) {
  const auto errors = run_thread_ranks(
      GetParam(),
      [](const ProcessGroup& group) {
        for (const auto dtype :
             {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
          const at::Tensor sum = in_order(group.size(), kNumbers, dtype);
          const at::Tensor mine = group.allocate_tensor(kNumbers + 10, dtype);
          EXPECT_TRUE(is_shared(mine));
          // Each rank's begins elsewhere.
          at::Tensor part = mine.narrow(0, group.rank(), kNumbers);
          for (int round = 0; round < 2; ++round) {
            mine.fill_(-1);
            part.copy_(uneven(group.rank(), kNumbers, dtype));
            group.all_reduce(part);
            EXPECT_TRUE(torch::equal(part, sum)) << dtype;
            EXPECT_TRUE(
                mine.narrow(0, 0, group.rank()).eq(-1).all().item<bool>());
            EXPECT_TRUE(
                mine.narrow(0, group.rank() + kNumbers, 10 - group.rank())
                    .eq(-1)
                    .all()
                    .item<bool>());
          }
        }
      },
      kShared);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(SharedTensors, MayBeSummedWithOthers) {
  const auto errors = run_thread_ranks(
      GetParam(),
      [](const ProcessGroup& group) {
        const at::Tensor sum = in_order(group.size(), kNumbers, at::kFloat);
        for (int ordinary = 0; ordinary < group.size(); ++ordinary) {
          at::Tensor mine = group.rank() == ordinary
                                ? torch::empty({kNumbers})
                                : group.allocate_tensor(kNumbers);
          mine.copy_(uneven(group.rank(), kNumbers, at::kFloat));
          group.all_reduce(mine);
          EXPECT_TRUE(torch::equal(mine, sum)) << ordinary;
        }
      },
      kShared);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SharedTensor, OutlivesItsGroup) {
  std::vector<at::Tensor> kept(2);
  const auto errors = run_thread_ranks(
      2,
      [&](const ProcessGroup& group) {
        kept[static_cast<std::size_t>(group.rank())] =
            group.allocate_tensor(kNumbers).fill_(group.rank());
        group.barrier();
      },
      kShared);
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_EQ(kept[0].sum().item<double>(), 0);
  EXPECT_EQ(kept[1].sum().item<double>(), kNumbers);
}

// 2^61 + 4 numbers of 8 bytes are 32 bytes, in 64 bits.
TEST(SharedTensor, OfMoreThanThereIsIsAnError) {
  const auto errors = run_thread_ranks(
      1,
      [](const ProcessGroup& group) {
        for (const std::int64_t count : {(1LL << 61) + 4, -1LL}) {
          EXPECT_ANY_THROW(
              static_cast<void>(group.allocate_tensor(count, at::kDouble)));
        }
      },
      kShared);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SharedTensor, IsAnOrdinaryOneWithGloo) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        at::Tensor ones = group.allocate_tensor(10, at::kLong).fill_(1);
        EXPECT_FALSE(is_shared(ones));
        group.all_reduce(ones);
        EXPECT_TRUE(torch::equal(ones, torch::full({10}, 2)));
      },
      {.backend = "gloo"});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Two steps: after the first the Reducer makes its buckets anew.
TEST(SharedTensor, BucketsAreSuch) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        torch::nn::Linear net(1000, 1000);
        {
          const torch::NoGradGuard no_grad;
          net->weight.fill_(0.5);
          net->bias.zero_();
        }
        DistributedDataParallel model(
            net,
            {.process_group = group, .gradient_as_bucket_view = true});
        for (int step = 0; step < 3; ++step) {
          model->zero_grad();
          const at::Tensor input =
              torch::full({4, 1000}, group.rank() + 1.0 + step);
          model->forward(input).sum().backward();
          EXPECT_TRUE(is_shared(net->weight.grad()));
          EXPECT_TRUE(torch::equal(
              net->weight.grad(),
              torch::full({1000, 1000}, 4 * (1.5 + step))));
        }
      },
      kShared);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

void with_a_group(const std::function<void(const ProcessGroup&)>& body) {
  EXPECT_THAT(run_thread_ranks(1, body, kShared), Each(IsEmpty()));
}

TEST(SharedMemory, GivesWhatWasFreedAgain) {
  with_a_group([](const ProcessGroup& group) {
    at::Tensor first = group.allocate_tensor(10'000, at::kByte);
    at::Tensor second = group.allocate_tensor(1, at::kByte);
    at::Tensor third = group.allocate_tensor(5000, at::kByte);
    const void* const begin = first.const_data_ptr();
    EXPECT_EQ(
        static_cast<const std::byte*>(second.const_data_ptr()),
        static_cast<const std::byte*>(begin) + 12'288);
    first.reset();
    third.reset();
    second.reset();
    const at::Tensor whole = group.allocate_tensor(25'000, at::kByte);
    EXPECT_EQ(whole.const_data_ptr(), begin);
  });
}

TEST(SharedMemory, IsTakenOnlyForWhatIsThere) {
  const auto kilobytes = [] {
    const std::string text = test::file_text("/proc/self/status");
    return std::stoi(text.substr(text.find("RssShmem:") + 9));
  };
  with_a_group([&](const ProcessGroup& group) {
    const int before = kilobytes();
    at::Tensor tensor = group.allocate_tensor(8 << 20, at::kByte).fill_(1);
    EXPECT_GE(kilobytes() - before, 8 << 10);
    tensor.reset();
    EXPECT_LT(kilobytes() - before, 1 << 10);
  });
}

TEST(SharedMemory, StaysWhenAForkFreesIt) {
  with_a_group([](const ProcessGroup& group) {
    at::Tensor tensor = group.allocate_tensor(10'000, at::kByte).fill_(7);
    const pid_t child = ::fork();
    if (child == 0) {
      tensor.reset();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(tensor.eq(7).all().item<bool>());
  });
}

TEST(SharedMemory, ThatTheMachineDoesNotHaveIsRefused) {
  with_a_group([](const ProcessGroup& group) {
    EXPECT_THROW(
        static_cast<void>(group.allocate_tensor(INT64_MAX / 2, at::kByte)),
        c10::Error);
  });
}

} // namespace
} // namespace lockstep::dist
