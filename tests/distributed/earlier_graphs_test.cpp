// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs of an earlier pass that hold a buffer, which the next pass takes over
// from rank 0.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::ProcessGroup;
using dist::run_thread_ranks;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

using Write = std::function<void(const at::Tensor& scale, const at::Tensor& x)>;

/// Forward writes a buffer before it uses it.
struct Rescaled : torch::nn::Module {
  explicit Rescaled(Write write_) : write(std::move(write_)) {
    weight = register_parameter("weight", torch::full({1}, 2.0));
    scale = register_buffer("scale", torch::ones({1}));
    other = register_buffer("other", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) {
    if (is_training()) {
      const torch::NoGradGuard no_grad;
      write(scale, x);
    }
    return x * weight * scale;
  }
  Write write;
  at::Tensor weight;
  at::Tensor scale;
  at::Tensor other;
};

/// A pass in training and one in evaluation; then the gradients of both on each
/// rank alone, so that no rank waits for another one.
std::vector<std::string> gradients_of_both(
    const Write& write,
    double expected,
    const std::vector<std::string>& ignored = {}) {
  return run_thread_ranks(2, [&](const ProcessGroup& group) {
    const auto net = std::make_shared<Rescaled>(write);
    DistributedDataParallel model(
        net,
        {.process_group = group, .ignored = ignored});
    const at::Tensor x = torch::full({2}, group.rank() + 1.0);
    const at::Tensor first = model->forward(x);
    net->eval();
    const at::Tensor second = model->forward(x);
    const auto gradients =
        torch::autograd::grad({first.sum() + second.sum()}, {net->weight});
    EXPECT_EQ(gradients[0].item<double>(), expected * x.sum().item<double>());
  });
}

// Python's gives a gradient that fits no output.
TEST(EarlierGraphs, OfABufferThatThisRankWroteAreRefused) {
  const auto errors = gradients_of_both(
      [](const at::Tensor& scale, const at::Tensor& x) {
        scale.copy_(x.max());
      },
      1 + 1);
  EXPECT_EQ(errors[0], "");
  EXPECT_THAT(errors[1], HasSubstr("modified by an inplace operation"));
}

TEST(EarlierGraphs, OfABufferThatAllRanksWroteAlikeStayUsable) {
  const Write write = [](const at::Tensor& scale, const at::Tensor& /*x*/) {
    scale.add_(2);
  };
  EXPECT_THAT(gradients_of_both(write, 3 + 3), Each(IsEmpty()));
  EXPECT_THAT(gradients_of_both(write, 3 + 3, {"other"}), Each(IsEmpty()));
}

// Its kernels count no update: as on one rank.
TEST(EarlierGraphs, OfABatchNormInTrainingStayUsable) {
  for (const std::vector<std::string>& ignored :
       {std::vector<std::string>{}, {"num_batches_tracked"}}) {
    const auto errors = run_thread_ranks(2, [&](const ProcessGroup& group) {
      torch::nn::BatchNorm1d net(3);
      DistributedDataParallel model(
          net,
          {.process_group = group, .ignored = ignored});
      const auto loss = [&](double power) {
        const at::Tensor x = torch::linspace(0, group.rank() + 1, 12);
        return model->forward(x.pow(power).view({4, 3})).pow(3).sum();
      };
      loss(1).backward();
      loss(2).backward();
      const at::Tensor apart = net->weight.grad().clone();
      const at::Tensor first = loss(1);
      const at::Tensor second = loss(2);
      at::Tensor sum =
          torch::autograd::grad({first + second}, {net->weight})[0].clone();
      group.all_reduce(sum);
      EXPECT_TRUE(torch::allclose(sum / 2, apart, 1e-5, 1e-6));
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

} // namespace
} // namespace lockstep
