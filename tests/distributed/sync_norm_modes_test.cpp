// SPDX-License-Identifier: BSD-3-Clause
//
// BatchNorm over the batches of all ranks where nothing is recorded.
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using testing::Each;
using testing::IsEmpty;

template <class Guard>
void expect_statistics_of_all() {
  const at::Tensor all = torch::linspace(-1, 3, 48).pow(2).view({8, 3, 2});
  const auto errors = dist::run_thread_ranks(2, [&](const auto& group) {
    torch::nn::BatchNorm1d net(3);
    torch::nn::BatchNorm1d full(3);
    EXPECT_EQ(convert_sync_batchnorm(*net, group), 1);
    for (const bool trains : {true, false}) {
      net->train(trains);
      full->train(trains);
      const Guard guard;
      const at::Tensor expected =
          full->forward(all).narrow(0, 4 * group.rank(), 4);
      const at::Tensor got = net->forward(all.narrow(0, 4 * group.rank(), 4));
      EXPECT_TRUE(torch::allclose(got, expected, 1e-5, 1e-6)) << trains;
    }
    EXPECT_TRUE(torch::allclose(net->running_mean, full->running_mean));
    EXPECT_TRUE(torch::allclose(net->running_var, full->running_var));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(SyncBatchNorm, TakesStatisticsOfAllRanksWithoutGradients) {
  expect_statistics_of_all<torch::NoGradGuard>();
}

TEST(SyncBatchNorm, TakesStatisticsOfAllRanksInInferenceMode) {
  expect_statistics_of_all<c10::InferenceMode>();
}

} // namespace
} // namespace lockstep
