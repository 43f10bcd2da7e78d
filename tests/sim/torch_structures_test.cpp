// SPDX-License-Identifier: BSD-3-Clause
//
// The cases of PyTorch's test_data_parallel.py that concern what goes into the
// module and comes out of it, under the same names. docs/torch_tests.md lists
// all names.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/functional.h"
#include "tests/sim/kinds.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using parallel::data_parallel;
using test::home_of;
using test::kKinds;
using test::max_difference;
using test::sim;
using test::two;

using NestedOutput = std::tuple<
    std::vector<at::Tensor>,
    std::tuple<at::Tensor, std::vector<at::Tensor>>,
    std::map<std::string, std::tuple<at::Tensor>>>;

struct NestsOutputImpl : nn::Cloneable<NestsOutputImpl> {
  void reset() override {}
  NestedOutput forward(const at::Tensor& x) {
    return {
        {x.sin(), x.cos()},
        {x.exp(), {x.abs()}},
        {{"a", {x.sin()}}, {"b", {x + 1}}}};
  }
};
TORCH_MODULE(NestsOutput);

TEST(TestDataParallel, test_data_parallel_nested_output) {
  for (const std::string kind : kKinds) {
    NestsOutput net;
    DataParallel model(net, two(kind));
    const auto x = torch::randn({2, 2}).to(home_of(kind));
    const auto got = structure::flatten(model->forward(x));
    const auto want = structure::flatten(net->forward(x));
    ASSERT_EQ(got.size(), 6U);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(torch::equal(got[i], want[i])) << kind << ' ' << i;
    }
  }
}

struct TakesNestedImpl : nn::Cloneable<TakesNestedImpl> {
  using Input = std::tuple<
      at::Tensor,
      std::tuple<std::tuple<at::Tensor>, std::vector<at::Tensor>>>;
  void reset() override {}
  at::Tensor forward(const Input& in) {
    const auto& [first, rest] = in;
    return first + std::get<0>(std::get<0>(rest)) + std::get<1>(rest).at(1);
  }
};
TORCH_MODULE(TakesNested);

TEST(TestDataParallel, test_data_parallel_nested_input) {
  for (const std::string kind : kKinds) {
    TakesNested net;
    DataParallel model(net, two(kind));
    const auto x = torch::randn({3, 3}).to(home_of(kind));
    const TakesNestedImpl::Input in{x, {{x * 2}, {x, x * 3}}};
    EXPECT_TRUE(torch::equal(model->forward(in), net->forward(in))) << kind;
  }
}

struct NoInputImpl : nn::Cloneable<NoInputImpl> {
  NoInputImpl() {
    reset();
  }
  void reset() override {
    value = register_parameter("value", torch::ones({2}));
  }
  at::Tensor forward() {
    return value * 1;
  }
  at::Tensor value;
};
TORCH_MODULE(NoInput);

TEST(TestDataParallel, test_data_parallel_module_zero_inputs) {
  const std::vector<DataParallelOptions> choices{
      {.device_ids = {0}},
      {.device_ids = {0, 1}},
      {},
      {.devices = "cpu*2"}};
  for (const DataParallelOptions& options : choices) {
    NoInput net;
    net->to(options.devices.is_empty() ? sim(0) : torch::Device("cpu"));
    DataParallel model(net, options);
    const auto out = model->forward();
    EXPECT_EQ(out.numel(), 2);
    out.sum().backward();
    EXPECT_EQ(net->value.grad().sum().item<float>(), 2.0F);
    EXPECT_EQ(data_parallel(net.ptr(), options).numel(), 2);
  }
}

TEST(TestDataParallel, test_data_parallel_device_args) {
  nn::Linear net(10, 5);
  net->to(sim(0));
  const auto x = torch::randn({20, 10}, sim(0));
  const std::vector<DataParallelOptions> same{
      {.device_ids = {0, 1}, .output_device = "sim:0"},
      {.devices = "sim:0,1", .output_device = "sim:0"},
      {.devices = "sim*2"}};
  for (const DataParallelOptions& options : same) {
    const auto out = data_parallel(net.ptr(), options, x);
    EXPECT_EQ(out.device(), sim(0));
    EXPECT_LT(max_difference(out, net->forward(x)), 1e-6);
  }
  const auto out = data_parallel(
      net.ptr(),
      {.device_ids = {0, 1}, .output_device = "sim:1"},
      x);
  EXPECT_EQ(out.device(), sim(1));
}

// The penalty's graph outlives what made it: f's gradient with respect to x is
// the weight, so d(penalty)/d(weight) and d/d(bias) are known exactly.
TEST(TestDataParallel, test_data_parallel_function_deletion) {
  for (const std::string kind : kKinds) {
    nn::Linear net(1, 1);
    net->to(home_of(kind));
    DataParallelOptions options = two(kind);
    options.connected_graph = true;
    DataParallel model(net, options);
    const auto x = torch::ones({4, 1}, home_of(kind)).requires_grad_();
    {
      const auto sum = model->forward(x).sum();
      const auto gradient = torch::autograd::grad(
          {sum},
          {x},
          {},
          /*retain_graph=*/true,
          /*create_graph=*/true);
      (gradient[0].mean() * 0.25).backward();
    }
    EXPECT_FLOAT_EQ(net->weight.grad().item<float>(), 0.25F) << kind;
    const auto bias = net->bias.grad();
    EXPECT_TRUE(!bias.defined() || bias.item<float>() == 0.0F) << kind;
  }
}

} // namespace
} // namespace lockstep
