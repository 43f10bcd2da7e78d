// SPDX-License-Identifier: BSD-3-Clause
//
// DistributedDataParallel with each rank on a simulated device of its own.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/sim/support.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using dist::ProcessGroup;
using test::same_bits;
using test::sim;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Waves, different for each rank and step.
at::Tensor images_of(int rank, int step) {
  return torch::arange(4.0 * 36)
      .add(50 * rank + 7 * step)
      .sin()
      .view({4, 1, 6, 6});
}

/// Parameters and buffers, on the CPU, after steps with LibTorch's SGD.
std::vector<at::Tensor>
trained(const ProcessGroup& group, const torch::Device& device, bool views) {
  nn::Sequential net(
      nn::Conv2d(1, 4, 3),
      nn::BatchNorm2d(4),
      nn::ReLU(),
      nn::Flatten(),
      nn::Linear(64, 3));
  const auto tensors = [&] {
    auto all = net->parameters();
    for (const at::Tensor& buffer : net->buffers()) {
      all.push_back(buffer);
    }
    return all;
  };
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      const at::Tensor numbers = torch::arange(double(parameter.numel()));
      parameter.copy_(numbers.cos().view_as(parameter));
    }
  }
  net->to(device);
  DistributedDataParallel model(
      *net,
      {.process_group = group, .gradient_as_bucket_view = views});
  torch::optim::SGD sgd(
      model->parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int step = 0; step < 5; ++step) {
    sgd.zero_grad();
    const at::Tensor out =
        model->forward(images_of(group.rank(), step).to(device));
    EXPECT_EQ(out.device(), device);
    nn::functional::cross_entropy(out, torch::arange(4, device).remainder(3))
        .backward();
    sgd.step();
  }
  std::vector<at::Tensor> found;
  for (const at::Tensor& tensor : tensors()) {
    found.push_back(tensor.detach().cpu());
  }
  return found;
}

TEST(SimDistributed, TrainsToTheBitsOfTheCpu) {
  for (const bool views : {false, true}) {
    const auto errors = dist::run_thread_ranks(
        2,
        [&](const ProcessGroup& group) {
          const auto cpu = trained(group, torch::kCPU, views);
          const auto device = trained(group, sim(group.rank()), views);
          for (std::size_t i = 0; i < cpu.size(); ++i) {
            EXPECT_TRUE(same_bits(cpu[i], device[i])) << i;
          }
        },
        {.backend = "shm"});
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

// LibTorch's Gloo knows the CPU and CUDA only.
TEST(SimDistributed, GlooRefusesTheDevice) {
  const auto errors = dist::run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        at::Tensor tensor = torch::ones({2}, sim(group.rank()));
        group.all_reduce(tensor);
      },
      {.backend = "gloo"});
  EXPECT_THAT(errors, Each(HasSubstr("unsupported device type sim")));
}

} // namespace
} // namespace lockstep
