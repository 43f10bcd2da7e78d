// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/hooks/weight_average.h"

#include <cmath>
#include <string_view>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {
namespace {

// Masks are no weights: what is infinite stays, and what is true or false.
TEST(MeanOfEpochs, LeavesMasksAlone) {
  struct Net : torch::nn::Module, UnsavedBuffers {
    Net() {
      const at::Tensor mask = torch::full({2, 2}, -INFINITY).triu(1);
      weight = register_parameter("weight", torch::ones({1}));
      register_buffer("mask", mask);
      register_buffer("is_on", torch::tensor({true, false}));
      register_buffer("unsaved", mask.clone());
    }
    [[nodiscard]] bool is_unsaved(std::string_view name) const override {
      return name == "unsaved";
    }
    at::Tensor weight;
  } net;
  SGD sgd(net, {.lr = 0.1});
  const dist::ProcessGroup group;
  const StepScope scope{net, sgd, group, 1, 1};
  const auto mean = mean_of_epochs(net, 1);
  for (const double value : {1.0, 2.0, 6.0}) {
    net.weight.data().fill_(value);
    mean->end_steps(scope);
  }
  mean->begin_test(scope);
  EXPECT_EQ(net.weight.item<float>(), 3.0F);
  EXPECT_TRUE(at::equal(
      net.named_buffers()["mask"],
      torch::full({2, 2}, -INFINITY).triu(1)));
  EXPECT_TRUE(
      at::equal(net.named_buffers()["unsaved"], net.named_buffers()["mask"]));
  mean->end_test(scope);
  EXPECT_EQ(net.weight.item<float>(), 6.0F);
}

} // namespace
} // namespace lockstep::train
