// SPDX-License-Identifier: BSD-3-Clause
//
// Gradients that add up on each rank and are averaged later.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/group/thread_ranks.h"

namespace lockstep {
namespace {

using dist::run_thread_ranks;
using testing::Each;
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

TEST(NoSync, IsAveragedWithoutAnotherPass) {
  for (const bool are_views : {false, true}) {
    const auto errors =
        run_thread_ranks(2, [are_views](const dist::ProcessGroup& group) {
          torch::nn::Sequential net(
              torch::nn::Linear(3, 4),
              torch::nn::BatchNorm1d(4),
              torch::nn::Linear(4, 1));
          const auto linear = net->at<torch::nn::LinearImpl>(0).parameters();
          linear[1].requires_grad_(false);
          DistributedDataParallel model(
              *net,
              {.process_group = group, .gradient_as_bucket_view = are_views});
          for (int step = 0; step < 3; ++step) {
            model->zero_grad();
            const auto no_sync = model->no_sync();
            std::vector<at::Tensor> own;
            for (int part = 0; part < 2; ++part) {
              const at::Tensor x = torch::rand({5, 3}) + group.rank();
              model->forward(x).square().sum().backward();
            }
            for (const at::Tensor& parameter : net->parameters()) {
              own.push_back(
                  parameter.requires_grad() ? parameter.grad().clone()
                                            : at::Tensor());
            }
            {
              const at::NoGradGuard no_grad; // as in the end of a step
              model->average_gradients();
            }
            const auto parameters = net->parameters();
            for (std::size_t i = 0; i < own.size(); ++i) {
              if (own[i].defined()) {
                const auto all = group.all_gather(own[i]);
                EXPECT_TRUE(torch::allclose(
                    parameters[i].grad(),
                    (all[0] + all[1]) / 2));
              }
            }
            EXPECT_FALSE(linear[1].grad().defined());
            const auto means = group.all_gather(net->buffers().front());
            EXPECT_TRUE(torch::equal(means[0], means[1]));
          }
          // An ordinary step after it.
          model->zero_grad();
          model->forward(torch::rand({5, 3})).sum().backward();
          const auto grads = group.all_gather(linear[0].grad());
          EXPECT_TRUE(torch::equal(grads[0], grads[1]));
        });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

} // namespace
} // namespace lockstep
