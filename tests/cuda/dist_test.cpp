// SPDX-License-Identifier: BSD-3-Clause
//
// Process groups with tensors of a GPU. NCCL wants a GPU for each rank, so here
// it has one rank; the others have two.
#include <unistd.h>

#include <chrono>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "tests/cuda/support.h"
#include "tests/parallel/nets.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::ProcessGroup;
using test::equal_bits;
using test::kGpu;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProcessGroup_CUDA : public test::CudaTest {};
class DistributedDataParallel_CUDA : public test::CudaTest {};

const dist::InitOptions kNccl{
    .backend = "nccl",
    .timeout = std::chrono::seconds(30)};

/// Gradients and weights after three steps, with or without a group.
std::vector<at::Tensor> trained(const ProcessGroup* group, bool views) {
  torch::manual_seed(7);
  auto net = test::conv_net();
  net->to(kGpu);
  const at::Tensor x = test::images(8);
  const at::Tensor labels = test::labels(8).to(kGpu);
  torch::optim::SGD sgd(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto steps = [&](const auto& forward) {
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      torch::cross_entropy_loss(forward(x), labels).backward();
      sgd.step();
    }
  };
  if (group == nullptr) {
    steps([&](const at::Tensor& in) { return net->forward(in.to(kGpu)); });
  } else {
    DistributedDataParallel model(
        net,
        {.process_group = *group, .gradient_as_bucket_view = views});
    steps([&](const at::Tensor& in) { return model->forward(in); });
  }
  auto found = test::gradients_of(*net);
  for (const at::Tensor& tensor : test::copies(test::state_of(*net))) {
    found.push_back(tensor);
  }
  return found;
}

void check_one_rank(const ProcessGroup& group) {
  at::Tensor tensor = torch::full({1000, 10}, 3.0, kGpu);
  group.all_reduce(tensor);
  EXPECT_TRUE(tensor.eq(3).all().item<bool>());
  group.broadcast(tensor);
  EXPECT_TRUE(equal_bits(group.all_gather(tensor).at(0), tensor));
  EXPECT_TRUE(equal_bits(group.reduce_scatter({tensor}), tensor));
  group.barrier();
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{2}};
  EXPECT_EQ(group.all_gather_bytes(bytes).at(0), bytes);
  std::vector<double> sums{1.5, 2.5};
  group.sum(sums);
  EXPECT_EQ(sums, (std::vector<double>{1.5, 2.5}));
  EXPECT_TRUE(group.any(true));
}

TEST_F(ProcessGroup_CUDA, NcclWithOneRank) {
  const auto errors = dist::run_thread_ranks(
      1,
      [](const ProcessGroup& group) {
        EXPECT_EQ(group.backend(), "nccl");
        check_one_rank(group);
        at::Tensor on_host = torch::ones({2});
        EXPECT_ANY_THROW(group.all_reduce(on_host));
      },
      kNccl);
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_F(ProcessGroup_CUDA, TakesNcclForTheGpuOfItsOwnAccord) {
  const auto errors = dist::run_thread_ranks(
      1,
      [](const ProcessGroup& group) {
        EXPECT_THAT(group.backend(), HasSubstr("cuda:nccl"));
        check_one_rank(group);
        at::Tensor on_host = torch::ones({2});
        group.all_reduce(on_host);
        EXPECT_TRUE(equal_bits(on_host, torch::ones({2})));
      },
      {.timeout = std::chrono::seconds(30)});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_F(ProcessGroup_CUDA, TheDefaultGroupOfAProgramThatNothingStarted) {
  const ProcessGroup group =
      dist::init_process_group({.timeout = std::chrono::seconds(30)});
  EXPECT_EQ(group.size(), 1);
  check_one_rank(group);
  dist::destroy_process_group();
}

// By way of the CPU; threads may share the GPU as long as none goes backward.
TEST_F(ProcessGroup_CUDA, TwoRanksSumOnOneGpu) {
  for (const char* backend : {"shm", "gloo"}) {
    const auto errors = dist::run_thread_ranks(
        2,
        [](const ProcessGroup& group) {
          at::Tensor tensor = torch::full({300}, group.rank() + 1.0, kGpu);
          group.all_reduce(tensor);
          EXPECT_EQ(tensor.device(), kGpu);
          EXPECT_TRUE(tensor.eq(3).all().item<bool>());
          group.broadcast(tensor, 1);
          group.barrier();
        },
        {.backend = backend, .timeout = std::chrono::seconds(30)});
    EXPECT_THAT(errors, Each(IsEmpty())) << backend;
  }
}

TEST_F(DistributedDataParallel_CUDA, OneRankOverNcclIsThePlainModule) {
  const auto expected = trained(nullptr, false);
  for (const char* backend : {"nccl", "", "gloo"}) {
    for (const bool views : {false, true}) {
      const auto errors = dist::run_thread_ranks(
          1,
          [&](const ProcessGroup& group) {
            test::expect_same(trained(&group, views), expected);
          },
          {.backend = backend, .timeout = std::chrono::seconds(30)});
      EXPECT_THAT(errors, Each(IsEmpty())) << backend;
    }
  }
}

TEST_F(DistributedDataParallel_CUDA, TwoProcessesAverageOnOneGpu) {
  const test::ScratchDir folder;
  const std::string rank =
      "\"$(readlink -f /proc/" + std::to_string(getpid()) + "/exe)\" --rank ";
  const std::string place = " '" + folder.path() + "'";
  const test::ShellOutcome outcome = test::run_shell(
      rank + "1" + place + " & other=$!; " + rank + "0" + place +
      "; status=$?; wait $other && exit $status");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

} // namespace
} // namespace lockstep
