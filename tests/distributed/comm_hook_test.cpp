// SPDX-License-Identifier: BSD-3-Clause
//
// Communication hooks, beside PyTorch's own cases in torch_hooks_test.cpp.
#include "lockstep/distributed/comm_hook.h"

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

TEST(CommHook, RanksWithDifferentHooksAreNamed) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    if (group.rank() == 1) {
      model->register_comm_hook(dist::bf16_compress_hook());
    }
    model->forward(torch::ones({1, 3})).sum().backward();
  });
  EXPECT_THAT(
      errors,
      Each(AllOf(
          HasSubstr("ranks 0 and 1 differ in 1 line"),
          HasSubstr("'comm_hook: none' and 'comm_hook: bf16_compress_hook'"))));
}

TEST(CommHook, WhatItThrowsComesOutOfBackward) {
  const auto errors = run_thread_ranks(2, [](const dist::ProcessGroup& group) {
    torch::nn::Linear net(3, 1);
    DistributedDataParallel model(net, {.process_group = group});
    model->register_comm_hook(
        {.name = "broken",
         .run = [](const auto&, dist::GradBucket&) -> dist::TensorFuture {
           throw std::runtime_error("no more");
         }});
    model->forward(torch::ones({1, 3})).sum().backward();
  });
  EXPECT_THAT(errors, Each(HasSubstr("no more")));
}

TEST(CommHook, CompressionRoundsToHalfOfTheBits) {
  for (const auto& [hook, dtype] :
       {std::pair(dist::fp16_compress_hook(), at::kHalf),
        std::pair(dist::bf16_compress_hook(), at::kBFloat16)}) {
    const auto errors =
        run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          torch::nn::Linear net(3, 1);
          DistributedDataParallel model(net, {.process_group = group});
          model->register_comm_hook(hook);
          const at::Tensor inputs = torch::full({1, 3}, 0.1 + group.rank());
          model->forward(inputs).sum().backward();
          const at::Tensor expected =
              torch::full({1, 3}, 0.1).to(dtype).div_(2) +
              torch::full({1, 3}, 1.1).to(dtype).div_(2);
          EXPECT_TRUE(
              torch::equal(net->weight.grad(), expected.to(at::kFloat)));
        });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

} // namespace
} // namespace lockstep
