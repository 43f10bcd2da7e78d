// SPDX-License-Identifier: BSD-3-Clause
//
// Gradients that add up on each rank and are averaged later.
#include <functional>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(NoSync, AddsUpAndAveragesLater) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    {
      const auto no_sync = model->no_sync();
      model->forward(torch::full({1, 3}, group.rank() + 1.0)).sum().backward();
      EXPECT_EQ(net->weight.grad()[0][0].item<double>(), group.rank() + 1.0);
    }
    model->forward(torch::full({1, 3}, group.rank() + 1.0)).sum().backward();
    EXPECT_EQ(net->weight.grad()[0][0].item<double>(), 3.0); // of 2 and 4
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

std::vector<at::Tensor> gradients_of(const torch::nn::Module& net) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : net.parameters()) {
    if (parameter.grad().defined()) {
      gradients.push_back(parameter.grad().clone());
    }
  }
  return gradients;
}

bool is_average(
    const at::Tensor& gradient,
    const at::Tensor& own,
    const dist::ProcessGroup& group) {
  const auto all = group.all_gather(own);
  return torch::allclose(gradient, (all[0] + all[1]) / 2);
}

bool is_equal_on_all(
    const at::Tensor& tensor,
    const dist::ProcessGroup& group) {
  const auto all = group.all_gather(tensor);
  return torch::equal(all[0], all[1]);
}

void average_without_a_pass(const dist::ProcessGroup& group, bool are_views) {
  torch::nn::Sequential net(
      torch::nn::Linear(3, 4),
      torch::nn::BatchNorm1d(4),
      torch::nn::Linear(4, 1));
  net->parameters()[1].requires_grad_(false);
  DistributedDataParallel model(
      *net,
      {.process_group = group, .gradient_as_bucket_view = are_views});
  for (int step = 0; step < 3; ++step) {
    model->zero_grad();
    const auto no_sync = model->no_sync();
    for (int part = 0; part < 2; ++part) {
      const at::Tensor x = torch::rand({5, 3}) + group.rank();
      model->forward(x).square().sum().backward();
    }
    const auto own = gradients_of(*net);
    ASSERT_EQ(own.size(), 5U);
    {
      const at::NoGradGuard no_grad; // as at the end of a step
      model->average_gradients();
    }
    const auto averages = gradients_of(*net);
    ASSERT_EQ(averages.size(), own.size()) << "no more than were there";
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(is_average(averages[i], own[i], group));
    }
    EXPECT_TRUE(is_equal_on_all(net->buffers().front(), group));
  }
  // An ordinary step after it.
  model->zero_grad();
  model->forward(torch::rand({5, 3})).sum().backward();
  EXPECT_TRUE(is_equal_on_all(gradients_of(*net).front(), group));
}

// A parameter without dimensions, and one without a part in the loss.
struct Scaled : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return first->forward(x) * scale;
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(3, 1));
  torch::nn::Linear unused = register_module("unused", torch::nn::Linear(3, 1));
  at::Tensor scale = register_parameter("scale", torch::tensor(2.0F));
};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_AVERAGE");
    return error.what();
  }
  return "none";
}

TEST(NoSync, LeavesUnusedParametersAlone) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    const auto net = std::make_shared<Scaled>();
    DistributedDataParallel model(
        net,
        {.process_group = group, .find_unused_parameters = true});
    {
      const auto no_sync = model->no_sync();
      model->forward(torch::full({1, 3}, group.rank() + 1.0)).sum().backward();
    }
    model->average_gradients();
    EXPECT_EQ(net->first->bias.grad().item<double>(), 2.0);
    EXPECT_EQ(net->scale.grad().dim(), 0);
    EXPECT_TRUE(is_equal_on_all(net->scale.grad(), group));
    EXPECT_FALSE(net->unused->weight.grad().defined());
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(NoSync, SaysWhatCannotBeAveraged) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    const auto net = std::make_shared<Scaled>();
    DistributedDataParallel model(net, {.process_group = group});
    const auto no_sync = model->no_sync();
    EXPECT_THAT(
        error_of([&] { model->average_gradients(); }),
        HasSubstr("has no gradient on this rank"));
    torch::nn::Embedding words(torch::nn::EmbeddingOptions(4, 2).sparse(true));
    DistributedDataParallel sparse(words, {.process_group = group});
    const auto held = sparse->no_sync();
    sparse->forward(torch::tensor({1, 2})).sum().backward();
    EXPECT_THAT(
        error_of([&] { sparse->average_gradients(); }),
        HasSubstr("the gradient of 'weight' is sparse"));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(NoSync, IsAveragedWithoutAnotherPass) {
  for (const bool are_views : {false, true}) {
    const auto errors =
        run_thread_ranks(2, [are_views](const dist::ProcessGroup& group) {
          average_without_a_pass(group, are_views);
        });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

} // namespace
} // namespace lockstep
