// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

using testing::Each;
using testing::IsEmpty;

// A converted layer whose group has ended cannot train: that tells them apart.
TEST(UninstallSyncBatchNorm, MakesEveryConvertedLayerAPlainOne) {
  torch::nn::BatchNorm2d layer(3);
  torch::nn::BatchNorm2d plain(3);
  const auto convert = [&](const auto& group) {
    EXPECT_EQ(convert_sync_batchnorm(*layer, group), 1);
  };
  const at::Tensor x = torch::randn({4, 3, 6, 5});
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_THAT(dist::run_thread_ranks(1, convert), Each(IsEmpty()));
    EXPECT_THROW(layer->forward(x), Exception);
    uninstall_sync_batchnorm();
    EXPECT_TRUE(torch::equal(layer->forward(x), plain->forward(x)));
  }
}

} // namespace
} // namespace lockstep
