// SPDX-License-Identifier: BSD-3-Clause
//
// Gradients through several replicas.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

using test::bits_equal;
using test::gradients_of;
using ::testing::HasSubstr;

at::Tensor loss_of(const at::Tensor& out) {
  return out.square().mean();
}

void expect_close(
    const std::vector<at::Tensor>& got,
    const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), expected[i].defined()) << i;
    if (got[i].defined()) {
      EXPECT_TRUE(torch::allclose(got[i], expected[i], 1e-5, 1e-6)) << i;
    }
  }
}

TEST(Backward, EqualsOneDeviceWithoutBatchNorm) {
  torch::manual_seed(3);
  auto net = test::mlp();
  const auto x = test::images(30);
  loss_of(net->forward(x)).backward();
  const auto expected = gradients_of(*net);
  for (const char* devices : {"cpu*2", "cpu*3", "cpu*7"}) {
    net->zero_grad();
    DataParallel model(net, {.devices = devices});
    loss_of(model->forward(x)).backward();
    expect_close(gradients_of(*net), expected);
  }
}

TEST(Backward, ReplicasKeepNoGradientsOfTheirOwn) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  loss_of(model->forward(test::images(4))).backward();
  for (const auto& p : model->group().replica(1).parameters()) {
    EXPECT_FALSE(p.grad().defined());
  }
}

TEST(Backward, InputGradientFlows) {
  torch::manual_seed(3);
  auto net = test::mlp();
  auto x = test::images(7).requires_grad_();
  loss_of(net->forward(x)).backward();
  const auto expected = x.grad().clone();
  x.mutable_grad().reset();
  DataParallel model(net, {.devices = "cpu*3"});
  loss_of(model->forward(x)).backward();
  EXPECT_TRUE(torch::allclose(x.grad(), expected, 1e-5, 1e-7));
  // Through what made the input, too.
  auto scale = torch::ones({1}).requires_grad_();
  loss_of(model->forward(x.detach() * scale)).backward();
  EXPECT_TRUE(torch::allclose(
      scale.grad(),
      (expected * x.detach()).sum().view({1}),
      1e-4,
      1e-6));
}

TEST(Backward, FrozenParametersGetNone) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  net->parameters()[0].set_requires_grad(false);
  loss_of(model->forward(test::images(4))).backward();
  const auto grads = gradients_of(*net);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_TRUE(grads[1].defined());
  // All frozen: nothing to differentiate.
  for (auto& p : net->parameters()) {
    p.set_requires_grad(false);
  }
  EXPECT_FALSE(model->forward(test::images(4)).requires_grad());
}

TEST(Backward, AccumulatesOverSeveralCalls) {
  torch::manual_seed(3);
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  const auto a = test::images(4);
  const auto b = test::images(6);
  loss_of(model->forward(a)).backward();
  const auto first = gradients_of(*net);
  net->zero_grad();
  loss_of(model->forward(b)).backward();
  const auto second = gradients_of(*net);
  loss_of(model->forward(a)).backward();
  const auto both = gradients_of(*net);
  for (std::size_t i = 0; i < both.size(); ++i) {
    EXPECT_TRUE(bits_equal(both[i], second[i] + first[i]));
  }
}

TEST(Backward, TwoForwardsBeforeOneBackward) {
  torch::manual_seed(3);
  auto net = test::conv_net();
  auto alone = test::conv_net();
  test::copy_state(*net, *alone);
  DataParallel model(net, {.devices = "cpu*2"});
  const auto a = test::images(4);
  const auto b = test::images(4);
  (loss_of(model->forward(a)) + loss_of(model->forward(b))).backward();
  for (const auto& x : {a, b}) {
    for (const auto& shard : x.chunk(2)) {
      (loss_of(alone->forward(shard)) / 2).backward();
    }
  }
  expect_close(gradients_of(*net), gradients_of(*alone));
}

TEST(Backward, RetainGraphTwiceThenTheUsualError) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  auto loss = loss_of(model->forward(test::images(4)));
  loss.backward({}, /*retain_graph=*/true);
  const auto once = gradients_of(*net);
  loss.backward();
  const auto twice = gradients_of(*net);
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(bits_equal(twice[i], once[i] + once[i]));
  }
  try {
    loss.backward();
    FAIL() << "no error";
  } catch (const c10::Error& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("backward through the graph a second time"));
  }
  // The group works on.
  loss_of(model->forward(test::images(4))).backward();
}

TEST(Backward, SecondPassThroughTheJoinHasTheUsualError) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  const auto out = model->forward(test::images(4));
  out.sum().backward();
  try {
    out.sum().backward();
    FAIL() << "no error";
  } catch (const c10::Error& e) {
    EXPECT_THAT(
        e.what(),
        HasSubstr("backward through the graph a second time"));
  }
}

TEST(Backward, GradFunctionServesParametersAndInputs) {
  torch::manual_seed(3);
  auto net = test::mlp();
  const auto x = test::images(6).requires_grad_();
  const auto weight = net->parameters()[2];
  const auto expected =
      torch::autograd::grad({loss_of(net->forward(x))}, {weight, x});
  DataParallel model(net, {.devices = "cpu*2"});
  const auto got =
      torch::autograd::grad({loss_of(model->forward(x))}, {weight, x});
  expect_close(got, expected);
  for (const auto& grad : gradients_of(*net)) {
    EXPECT_FALSE(grad.defined());
  }
}

TEST(Backward, CreateGraphSaysWhatToDo) {
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*2"});
  const auto out = model->forward(test::images(4)).sum();
  try {
    torch::autograd::grad(
        {out},
        {net->parameters()[0]},
        {},
        true,
        /*create_graph=*/true);
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(e.error().hint, HasSubstr("connected_graph"));
  }
}

TEST(Backward, HooksSeeTheSumOnce) {
  torch::manual_seed(3);
  auto net = test::mlp();
  DataParallel model(net, {.devices = "cpu*3"});
  int calls = 0;
  auto weight = net->parameters()[0];
  at::Tensor seen;
  const auto id = weight.register_hook([&](const at::Tensor& grad) {
    ++calls;
    seen = grad.clone();
    return grad * 2;
  });
  loss_of(model->forward(test::images(9))).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(bits_equal(weight.grad(), seen * 2));
  weight.remove_hook(id);
}

// The first linear layer is used twice; so is its weight by another name.
struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
  TiedImpl() {
    reset();
  }
  void reset() override {
    a = register_module("a", torch::nn::Linear(5, 5));
    b = register_parameter("b", a->weight);
    unused = register_parameter("unused", torch::ones({3}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return a->forward(torch::relu(a->forward(x))).mm(b);
  }
  torch::nn::Linear a = nullptr;
  at::Tensor b = {};
  at::Tensor unused = {};
};
TORCH_MODULE(Tied);

TEST(Backward, SharedAndUnusedParameters) {
  torch::manual_seed(3);
  Tied net;
  const auto x = torch::randn({6, 5});
  loss_of(net->forward(x)).backward();
  const auto weight = net->a->weight.grad().clone();
  const auto bias = net->a->bias.grad().clone();
  net->zero_grad();
  DataParallel model(net, {.devices = "cpu*2"});
  loss_of(model->forward(x)).backward();
  EXPECT_TRUE(torch::allclose(net->a->weight.grad(), weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(net->a->bias.grad(), bias, 1e-5, 1e-6));
  EXPECT_FALSE(net->unused.grad().defined());
}

TEST(Backward, HooksOfUnusedParametersAreNotCalledAsOnOneDevice) {
  Tied net;
  DataParallel model(net, {.devices = "cpu*2"});
  int calls = 0;
  net->unused.register_hook([&](const at::Tensor&) { ++calls; });
  const auto output = model->forward(torch::randn({6, 5}));
  EXPECT_EQ(output.grad_fn()->num_outputs(), 2);
  loss_of(output).backward();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(net->a->bias.grad().defined());
}

// Two biases of the output's own shape: both take the very same gradient.
struct BiasesImpl : torch::nn::Cloneable<BiasesImpl> {
  BiasesImpl() {
    reset();
  }
  void reset() override {
    a = register_parameter("a", torch::zeros({3, 4}));
    b = register_parameter("b", torch::zeros({3, 4}));
    c = register_parameter("c", torch::zeros({12}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return x + a + b + c.view({3, 4});
  }
  at::Tensor a = {}, b = {}, c = {};
};
TORCH_MODULE(Biases);

TEST(Backward, GradientsThatShareMemoryAreSummedApart) {
  torch::manual_seed(3);
  Biases net;
  DataParallel model(net, {.devices = "cpu*2"});
  const auto weight = torch::randn({6, 4});
  (model->forward(torch::zeros({6, 4})) * weight).sum().backward();
  const auto expected = weight.narrow(0, 0, 3) + weight.narrow(0, 3, 3);
  EXPECT_TRUE(bits_equal(net->a.grad(), expected));
  EXPECT_TRUE(bits_equal(net->b.grad(), expected));
  EXPECT_TRUE(bits_equal(net->c.grad(), expected.view({12})));
}

TEST(Backward, GradientOutlivesTheWrapper) {
  auto net = test::mlp();
  at::Tensor loss;
  {
    DataParallel model(net, {.devices = "cpu*2"});
    loss = loss_of(model->forward(test::images(4)));
  }
  loss.backward();
  EXPECT_TRUE(net->parameters()[0].grad().defined());
}

TEST(Backward, FewerRowsThanReplicas) {
  torch::manual_seed(3);
  auto net = test::mlp();
  const auto x = test::images(2);
  loss_of(net->forward(x)).backward();
  const auto expected = gradients_of(*net);
  net->zero_grad();
  DataParallel model(net, {.devices = "cpu*4"});
  loss_of(model->forward(x)).backward();
  expect_close(gradients_of(*net), expected);
}

} // namespace
} // namespace lockstep
