// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs of an earlier pass that hold a replica's buffer, which the next pass
// brings in line with the module's: Note [Buffers of earlier graphs] in
// lockstep/parallel/internal/broadcast.h.
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using testing::HasSubstr;

class KeptBuffers : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    KeptBuffers,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

class KeptBuffersOnCpu : public KeptBuffers {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    KeptBuffersOnCpu,
    testing::Values("cpu*2", "cpu*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

// Its rows times a buffer, which forward writes before it uses it.
struct RescaledImpl : nn::Cloneable<RescaledImpl> {
  using Write = std::function<void(const Tensor& scale, const Tensor& x)>;
  explicit RescaledImpl(Write write_) : write(std::move(write_)) {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::full({1}, 2.0));
    scale = register_buffer("scale", torch::ones({1}));
  }
  Tensor forward(const Tensor& x) {
    if (is_training()) {
      const torch::NoGradGuard no_grad;
      write(scale, x);
    }
    return x * weight * scale;
  }
  Write write;
  Tensor weight;
  Tensor scale;
};

// A pass in training and one in evaluation, then one backward for both.
std::string backward_of_both(
    const std::shared_ptr<RescaledImpl>& net,
    const char* devices,
    const Tensor& x) {
  net->to(x.device());
  DataParallel model(net, {.devices = devices});
  const auto first = model->forward(x);
  model->eval();
  const auto second = model->forward(x);
  try {
    (first.sum() + second.sum()).backward();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// What the other replicas wrote is gone by then: no gradient fits the output.
TEST_P(KeptBuffers, ThatThePassWroteAndTheNextBringsBack) {
  const auto of_shard = [](const Tensor& scale, const Tensor& x) {
    scale.copy_(x.abs().max());
  };
  const auto in_one_replica = [](const Tensor& scale, const Tensor& x) {
    if (x.max().item<float>() > 0.9) {
      scale.copy_(x.max());
    }
  };
  for (const RescaledImpl::Write& write :
       {RescaledImpl::Write(of_shard), RescaledImpl::Write(in_one_replica)}) {
    const auto x = here(torch::tensor({-0.5F, 0.25F, 3.F}).view({3, 1}));
    EXPECT_THAT(
        backward_of_both(std::make_shared<RescaledImpl>(write), GetParam(), x),
        HasSubstr("modified by an inplace operation"));
  }
}

// Every replica wrote what the module did.
TEST_P(KeptBuffersOnCpu, ThatEachPassWritesAlike) {
  const auto net = std::make_shared<RescaledImpl>(
      [](const Tensor& scale, const Tensor& /*x*/) { scale.add_(2); });
  const auto x = torch::arange(1, 7).to(torch::kFloat).view({6, 1});
  EXPECT_EQ(backward_of_both(net, GetParam(), x), "");
  EXPECT_TRUE(test::close(net->weight.grad(), x.sum() * 6));
}

// Its kernels count no update, on one device, too.
TEST_P(KeptBuffers, OfABatchNorm) {
  const auto x = here(torch::linspace(-1, 1, 36).pow(3).view({12, 3}));
  std::vector<Tensor> gradients;
  for (const bool is_apart : {true, false}) {
    nn::BatchNorm1d net(3);
    net->to(home());
    DataParallel model(net, {.devices = GetParam()});
    const auto loss = [&](double power) {
      return model->forward(x.abs().pow(power)).pow(3).sum();
    };
    if (is_apart) {
      loss(1).backward();
      loss(2).backward();
    } else {
      const auto first = loss(1);
      (first + loss(2)).backward();
    }
    gradients.push_back(net->weight.grad());
  }
  EXPECT_TRUE(test::close(gradients[1], gradients[0]));
}

} // namespace
} // namespace lockstep
