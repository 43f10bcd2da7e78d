// SPDX-License-Identifier: BSD-3-Clause
//
// The cases of PyTorch's test_data_parallel.py that concern the module, under
// the same names. On two simulated devices, and on two CPU replicas where the
// case says nothing about placement. docs/torch_tests.md lists all names.
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
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
using testing::HasSubstr;

TEST(TestDataParallel, test_data_parallel) {
  for (const bool is_backwards : {false, true}) {
    nn::Linear net(10, 5);
    net->to(torch::kFloat64);
    const auto x = torch::randn({20, 10}, torch::kFloat64).requires_grad_();
    const auto expected = net->forward(x);
    expected.sum().backward();
    const auto gradient = x.grad().clone();
    const auto weight = net->weight.grad().clone();
    net->zero_grad();
    x.mutable_grad() = at::Tensor();
    const DataParallelOptions ids{
        .device_ids = is_backwards ? std::vector<std::int64_t>{1, 0}
                                   : std::vector<std::int64_t>{0, 1}};
    net->to(sim(is_backwards ? 1 : 0));
    DataParallel model(net, ids);
    const auto out = model->forward(x);
    EXPECT_EQ(out.device(), sim(is_backwards ? 1 : 0));
    EXPECT_LT(max_difference(out, expected), 1e-12);
    out.sum().backward();
    EXPECT_LT(max_difference(x.grad(), gradient), 1e-12);
    EXPECT_LT(max_difference(net->weight.grad(), weight), 1e-12);
  }
  nn::Linear net(10, 5);
  net->to(sim(0));
  DataParallel all(net);
  EXPECT_EQ(all->devices().size(), 8U);
}

struct BufferNetImpl : nn::Cloneable<BufferNetImpl> {
  BufferNetImpl() {
    reset();
  }
  void reset() override {
    scale = register_buffer(
        "scale",
        torch::full({3}, 2.0, torch::dtype(torch::kFloat64)));
    scale.set_requires_grad(true);
  }
  at::Tensor forward(const at::Tensor& x) {
    return x * scale;
  }
  at::Tensor scale;
};
TORCH_MODULE(BufferNet);

TEST(TestDataParallel, test_data_parallel_buffers_requiring_grad) {
  for (const std::string kind : kKinds) {
    BufferNet net;
    net->to(home_of(kind));
    DataParallel model(net, two(kind));
    const auto x = torch::randn({4, 3}, torch::kFloat64).to(home_of(kind));
    model->forward(x).pow(2).sum().backward();
    const auto expected = (2 * x.pow(2) * 2).sum(0);
    ASSERT_TRUE(net->scale.grad().defined()) << kind;
    EXPECT_LT(max_difference(net->scale.grad(), expected), 1e-12) << kind;
  }
}

struct RnnNetImpl : nn::Cloneable<RnnNetImpl> {
  RnnNetImpl() {
    reset();
  }
  void reset() override {
    rnn = register_module(
        "rnn",
        nn::LSTM(nn::LSTMOptions(30, 10)
                     .num_layers(1)
                     .bidirectional(true)
                     .batch_first(true)));
  }
  at::Tensor forward(const at::Tensor& x) {
    rnn->flatten_parameters();
    return std::get<0>(rnn->forward(x));
  }
  nn::LSTM rnn = nullptr;
};
TORCH_MODULE(RnnNet);

TEST(TestDataParallel, test_data_parallel_rnn) {
  for (const std::string kind : kKinds) {
    RnnNet net;
    const auto plain = std::dynamic_pointer_cast<RnnNetImpl>(net->clone());
    net->to(home_of(kind));
    plain->to(home_of(kind));
    DataParallel model(net, two(kind));
    const auto x = torch::rand({6, 5, 30}).to(home_of(kind));
    const auto step = [&x](auto forward, const nn::Module& module) {
      torch::optim::SGD optimizer(module.parameters(), 0.1);
      forward(x).sum().backward();
      optimizer.step();
    };
    step([&](const auto& in) { return model->forward(in); }, *net);
    step([&](const auto& in) { return plain->forward(in); }, *plain);
    for (std::size_t i = 0; i < net->parameters().size(); ++i) {
      EXPECT_LT(
          max_difference(net->parameters()[i], plain->parameters()[i]),
          1e-5);
    }
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(model->forward(x).requires_grad());
  }
}

struct ManyInputsImpl : nn::Cloneable<ManyInputsImpl> {
  void reset() override {}
  at::Tensor forward(
      const at::Tensor& var1,
      const at::Tensor& var2,
      double factor,
      const std::optional<at::Tensor>& var3 = std::nullopt) {
    const auto product = factor * (var1 * var1 + var2);
    return var3 ? product + *var3 : product;
  }
};
TORCH_MODULE(ManyInputs);

TEST(TestDataParallel, test_data_parallel_multiple_input) {
  const std::vector<DataParallelOptions> choices{
      {.device_ids = {0, 1}},
      {.device_ids = {1, 0}},
      {.device_ids = {0}},
      {.devices = "cpu*2"}};
  for (const DataParallelOptions& options : choices) {
    ManyInputs net;
    const auto leaf = [] { return torch::randn({5, 5}).requires_grad_(); };
    const auto var1 = leaf();
    const auto var2 = leaf();
    const auto var3 = leaf();
    const double factor = 0.7;
    const auto check = [&](const at::Tensor& out, const at::Tensor& expected) {
      EXPECT_LT(max_difference(out, expected), 1e-6);
      const auto inputs = std::vector<at::Tensor>{var1, var2};
      const auto got = torch::autograd::grad({out.sum()}, inputs);
      const auto want = torch::autograd::grad({expected.sum()}, inputs);
      EXPECT_LT(max_difference(got[0], want[0]), 1e-6);
      EXPECT_LT(max_difference(got[1], want[1]), 1e-6);
    };
    DataParallel model(net, options);
    check(
        model->forward(var1, var2, factor, std::optional(var3)),
        net->forward(var1, var2, factor, var3));
    check(model->forward(var1, var2, factor), net->forward(var1, var2, factor));
    check(
        data_parallel(net.ptr(), options, var1, var2, factor),
        net->forward(var1, var2, factor));
  }
}

TEST(TestDataParallel, test_data_parallel_small_back) {
  for (const std::string kind : kKinds) {
    nn::Linear net(10, 5);
    net->to(home_of(kind));
    const auto x = torch::randn({20, 10}).to(home_of(kind));
    const auto expected = net->forward(x);
    const auto out = data_parallel(net.ptr(), two(kind), x);
    EXPECT_LT(max_difference(out, expected), 1e-6);
  }
}

// Where a module and the first device do not fit, both forms say so.
TEST(TestDataParallel, test_data_parallel_model_device) {
  const auto text = [](const auto& run) -> std::string {
    try {
      run();
    } catch (const Exception& e) {
      return e.error().message;
    }
    return "";
  };
  const std::vector<std::pair<torch::Device, std::vector<std::int64_t>>> bad{
      {torch::Device("cpu"), {0, 1}},
      {torch::Device("cpu"), {1, 0}},
      {sim(1), {0, 1}},
      {sim(0), {1, 0}},
      {sim(2), {0, 1, 2}}};
  for (const auto& [device, ids] : bad) {
    nn::Linear net(10, 5);
    net->to(device);
    const auto x = torch::randn({4, 10});
    const auto expected =
        "module must have its parameters and buffers on "
        "device sim:" +
        std::to_string(ids.front()) +
        " (device_ids[0]) but found one of them on device: " + device.str();
    const DataParallelOptions options{.device_ids = ids};
    EXPECT_EQ(text([&] { DataParallel(net, options)->forward(x); }), expected);
    EXPECT_EQ(text([&] { data_parallel(net.ptr(), options, x); }), expected);
  }
  // A module on several devices.
  nn::Sequential split(nn::Linear(10, 5), nn::Linear(5, 2));
  split[0]->to(sim(0));
  split[1]->to(sim(1));
  EXPECT_THAT(
      text([&] {
        DataParallel(split, {.device_ids = {0, 1}})
            ->forward(torch::randn({4, 10}));
      }),
      HasSubstr("found one of them on device: sim:1"));
  for (const torch::Device& input : {torch::Device("cpu"), sim(0), sim(5)}) {
    nn::Linear net(10, 5);
    net->to(sim(1));
    const auto x = torch::randn({4, 10}, input);
    const auto out = DataParallel(net, {.device_ids = {1, 0}})->forward(x);
    EXPECT_EQ(out.device(), sim(1));
  }
}

TEST(TestDataParallel, test_data_parallel_model_no_refcycles) {
  for (const std::string kind : kKinds) {
    nn::Linear net(2, 2);
    net->to(home_of(kind));
    const std::weak_ptr<nn::LinearImpl> watched = net.ptr();
    {
      DataParallel model(net, two(kind));
      net = nullptr;
      model->forward(torch::randn({4, 2}).to(home_of(kind))).sum().backward();
    }
    EXPECT_TRUE(watched.expired()) << kind;
  }
}

struct SeesGradModeImpl : nn::Cloneable<SeesGradModeImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    return x + (torch::GradMode::is_enabled() ? 1 : 0);
  }
};
TORCH_MODULE(SeesGradMode);

TEST(TestDataParallel, test_data_parallel_no_grad) {
  for (const std::string kind : kKinds) {
    DataParallel model(SeesGradMode(), two(kind));
    const auto x = torch::zeros({4}).to(home_of(kind));
    EXPECT_EQ(model->forward(x).sum().item<float>(), 4.0F);
    const torch::NoGradGuard no_grad;
    EXPECT_EQ(model->forward(x).sum().item<float>(), 0.0F);
  }
}

// Simulated devices refuse sparse tensors (docs/sim.md): CPU replicas only.
TEST(TestDataParallel, test_data_parallel_sparse) {
  nn::Embedding net(nn::EmbeddingOptions(10, 2).sparse(true));
  const auto x = torch::randint(10, {20, 5});
  net->forward(x).sum().backward();
  const auto expected = net->weight.grad().coalesce();
  net->weight.mutable_grad() = at::Tensor();
  DataParallel model(net, two("cpu"));
  model->forward(x).sum().backward();
  const auto gradient = net->weight.grad();
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_TRUE(torch::equal(gradient.coalesce().indices(), expected.indices()));
  EXPECT_LT(
      max_difference(gradient.coalesce().values(), expected.values()),
      1e-6);
}

} // namespace
} // namespace lockstep
