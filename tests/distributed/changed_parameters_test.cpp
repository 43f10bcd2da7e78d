// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters that a program thaws or adds after it has wrapped the module.
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

void expect_changed_is_named(
    const std::function<void(torch::nn::Sequential&)>& change,
    const std::string& message) {
  const auto errors = run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
    torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Linear(3, 1));
    net->ptr(0)->as<torch::nn::Linear>()->bias.set_requires_grad(false);
    DistributedDataParallel model(net, {.process_group = group});
    model->forward(torch::ones({1, 3})).sum().backward();
    change(net);
    {
      const torch::NoGradGuard no_grad; // an evaluation needs no average
      model->forward(torch::ones({1, 3}));
    }
    model->forward(torch::ones({1, 3}));
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr(message), HasSubstr("averaged"))));
}

TEST(ChangedParameters, ThatNobodyWouldAverageAreNamed) {
  expect_changed_is_named(
      [](torch::nn::Sequential& net) {
        net->ptr(0)->as<torch::nn::Linear>()->bias.set_requires_grad(true);
      },
      "parameter '0.bias' was thawed since");
  expect_changed_is_named(
      [](torch::nn::Sequential& net) {
        net->push_back(torch::nn::Linear(1, 1));
      },
      "parameter '2.weight' came into the module since");
  expect_changed_is_named(
      [](torch::nn::Sequential& net) {
        net->replace_module("1", torch::nn::Linear(3, 1));
      },
      "parameter '1.weight' came into the module since");
}

TEST(ChangedParameters, BuffersThatCameInAreRankZerosToo) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    const auto norm = [] {
      return torch::nn::BatchNorm1d(
          torch::nn::BatchNorm1dOptions(1).affine(false));
    };
    torch::nn::Sequential net(torch::nn::Linear(3, 1), norm());
    DistributedDataParallel model(net, {.process_group = group});
    model->forward(torch::ones({2, 3})).sum().backward();
    for (const float mean : {1.0F, 5.0F}) { // each time other tensors
      const auto other = norm();
      other->running_mean.fill_(mean + static_cast<float>(group.rank()));
      net->replace_module("1", other);
      model->forward(torch::ones({2, 3})).sum().backward();
      EXPECT_EQ(other->running_mean.item<float>(), mean);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ChangedParameters, AreNamedBesideIgnoredOnes) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Linear(3, 1));
    net->parameters()[1].set_requires_grad(false);
    DistributedDataParallel model(
        net,
        {.process_group = group, .ignored = {"1.bias"}});
    model->forward(torch::ones({1, 3})).sum().backward();
    net->parameters()[1].set_requires_grad(true);
    model->forward(torch::ones({1, 3}));
  });
  EXPECT_THAT(errors, Each(HasSubstr("parameter '0.bias' was thawed since")));
}

TEST(ChangedParameters, MayBeIgnoredOnes) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    net->bias.set_requires_grad(false);
    DistributedDataParallel model(
        net,
        {.process_group = group, .ignored = {"bias"}});
    net->bias.set_requires_grad(true);
    for (int pass = 0; pass < 2; ++pass) {
      model->forward(torch::ones({1, 3})).sum().backward();
    }
    EXPECT_EQ(net->bias.grad().item<float>(), 2.0F);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

} // namespace
} // namespace lockstep
