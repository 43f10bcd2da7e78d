// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/thread_ranks.h"

namespace lockstep {
namespace {

// Whatever stands around the names of the file: tests/oracle/tensor_wrapped.py.
TEST(DdpWeights, TakeTheWeightsOfEveryWrapper) {
  const test::ScratchDir folder;
  const auto files = test::python_lines("tensor_wrapped.py", {folder.path()});
  ASSERT_GT(files.size(), 35U);
  const auto errors =
      dist::run_thread_ranks(1, [&](const dist::ProcessGroup& group) {
        const StateDict expected = to_state_dict(load(folder / "bare.pt"));
        const torch::nn::Sequential net(
            torch::nn::Linear(2, 2),
            torch::nn::BatchNorm1d(2));
        DistributedDataParallel model(net, {.process_group = group});
        for (const std::string& file : files) {
          SCOPED_TRACE(file);
          const torch::NoGradGuard no_grad;
          for (const auto& [key, tensor] : state_dict(*net).entries) {
            tensor.zero_();
          }
          EXPECT_EQ(load_weights(*model, folder / file).taken, 7);
          for (const auto& [key, tensor] : state_dict(*net).entries) {
            EXPECT_TRUE(tensor.equal(expected.get(key))) << key;
          }
        }
      });
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
}

} // namespace
} // namespace lockstep
