// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs that are not one replica's in one pass: kept from a pass before,
// computed outside, reached by several replicas, left by another way.
#include <memory>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::any;
using test::AnyImpl;
using test::error_of;
using test::expect_same;
using testing::HasSubstr;

class KeptGraphs : public test::OnDevices {
 protected:
  // A module that is `forward`, over the devices of this test.
  DataParallel<AnyImpl> over(const AnyImpl::Forward& forward) {
    const auto home = this->home();
    return DataParallel<AnyImpl>(
        any(forward, home),
        {.devices = GetParam(), .factory = [=] { return any(forward, home); }});
  }
  Tensor six() {
    return here(torch::linspace(-1, 1, 6).view({6, 1}));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    KeptGraphs,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

// LibTorch keeps the edges of such an operation twice.
TEST_P(KeptGraphs, AParameterAddedInPlaceToAView) {
  expect_same(
      GetParam(),
      [](AnyImpl& net, const Tensor& x) {
        auto y = x.repeat({1, 3});
        y.narrow(1, 0, 1).add_(net.weight);
        y.narrow(1, 1, 2).mul_(net.weight);
        return y;
      },
      [&](const auto& forward, AnyImpl& net) {
        for (int pass = 0; pass < 2; ++pass) {
          forward(six()).pow(2).sum().backward();
        }
        return std::vector<Tensor>{net.weight.grad().clone()};
      });
}

// Truncated backpropagation that forgot to detach: on one device the earlier
// input gets a gradient.
struct StatefulImpl : nn::Cloneable<StatefulImpl> {
  StatefulImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(2, 1));
    state = Tensor();
  }
  Tensor forward(const Tensor& x) {
    const auto before = state.defined() ? state : torch::zeros_like(x);
    const auto now = torch::tanh(fc->forward(torch::cat({x, before}, 1)));
    state = keeps_graph ? now : now.detach();
    return now;
  }
  nn::Linear fc = nullptr;
  Tensor state = {};
  bool keeps_graph = true;
};

TEST_P(KeptGraphs, AHiddenStateThatLeadsToAnEarlierInputIsNamed) {
  for (const bool is_leaf : {true, false}) {
    auto net = std::make_shared<StatefulImpl>();
    net->to(home());
    DataParallel model(net, {.devices = GetParam()});
    const auto first = six().requires_grad_();
    model->forward(is_leaf ? first : first * 2);
    const Error error = error_of([&] { model->forward(six()); });
    EXPECT_THAT(error.message, HasSubstr("a hidden state that the module"));
    EXPECT_THAT(error.hint, HasSubstr("detach()"));
  }
}

TEST_P(KeptGraphs, AHiddenStateIsFineDetachedOrInAConnectedGraph) {
  for (const bool connected : {false, true}) {
    std::vector<Tensor> grads;
    for (const char* devices : {"one", GetParam()}) {
      torch::manual_seed(3);
      auto net = std::make_shared<StatefulImpl>();
      net->keeps_graph = connected;
      net->to(home());
      const auto x = six().requires_grad_();
      const auto run = [&](auto& module) {
        Tensor last;
        for (int step = 0; step < 3; ++step) {
          last = module.forward(x * (step + 1));
        }
        last.sum().backward();
      };
      if (devices == GetParam()) {
        DataParallel model(
            net,
            {.devices = GetParam(), .connected_graph = connected});
        run(*model);
      } else {
        run(*net);
      }
      grads.push_back(net->fc->weight.grad());
      grads.push_back(x.grad());
    }
    EXPECT_TRUE(test::close(grads[0], grads[2])) << connected;
    EXPECT_TRUE(test::close(grads[1], grads[3])) << connected;
  }
}

class KeptGraphsOnCpu : public KeptGraphs {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    KeptGraphsOnCpu,
    testing::Values("cpu*2", "cpu*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(KeptGraphsOnCpu, ATensorOfTheModulesOwnParametersFromOutside) {
  auto outside = std::make_shared<Tensor>();
  auto model = over([outside](AnyImpl& net, const Tensor& x) {
    return x * net.weight * *outside;
  });
  *outside = model->module()->weight + 1;
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(
        error_of([&] { model->forward(six()); }).message,
        HasSubstr("computed outside of it"));
  }
}

TEST_P(KeptGraphsOnCpu, TheModulesParameterItselfFromOutside) {
  const auto weight = std::make_shared<Tensor>();
  auto model = over([weight](AnyImpl& net, const Tensor& x) {
    return x * net.weight * *weight;
  });
  *weight = model->module()->weight;
  const auto x = six();
  for (int pass = 1; pass <= 3; ++pass) {
    model->forward(x).pow(2).sum().backward();
    // d/dw (x w w)^2 = 4 x^2 w^3, w = 2.
    EXPECT_TRUE(test::close(weight->grad(), x.pow(2).sum() * 32 * pass))
        << pass;
  }
}

TEST(KeptGraphsOnThree, ANodeThatTwoReplicasOfThreeReachIsNamed) {
  const auto leaf = torch::ones({1}, torch::requires_grad());
  const auto outside = leaf * 3;
  const auto make = [outside] {
    return any(
        [outside](AnyImpl& net, const Tensor& x) {
          return x[0].item<float>() > 1 ? x * net.weight * outside
                                        : x * net.weight;
        },
        torch::kCPU);
  };
  DataParallel model(make(), {.devices = "cpu*3", .factory = make});
  EXPECT_THAT(
      error_of([&] {
        model->forward(torch::tensor({{1.F}, {2.F}, {3.F}}));
      }).message,
      HasSubstr("computed outside of it"));
}

// A shared tensor that only some replicas use is nobody's loss.
TEST_P(KeptGraphsOnCpu, ASharedLeafThatReplica0SkipsTwice) {
  const auto scale =
      std::make_shared<Tensor>(torch::ones({1}, torch::requires_grad()));
  auto model = over([scale](AnyImpl& net, const Tensor& x) {
    const auto y = x * net.weight;
    return x[0].item<float>() > 0 ? y * *scale : y;
  });
  const auto all = torch::arange(1, 7).to(torch::kFloat).view({6, 1});
  model->forward(all).sum().backward();
  for (int pass = 0; pass < 2; ++pass) {
    scale->mutable_grad().reset();
    model->forward(six()).sum().backward();
    const auto end = six()[5].item<float>();
    EXPECT_GT(scale->grad().item<float>(), end);
  }
}

// Used every second step only, and in each replica another one.
TEST_P(KeptGraphsOnCpu, AMemberOfEachReplicaIsNamedWheneverItComesBack) {
  struct AlternateImpl : AnyImpl {
    AlternateImpl()
        : AnyImpl([this](AnyImpl& net, const Tensor& x) {
            const auto y = x * net.weight;
            return uses ? y * own : y;
          }) {}
    Tensor own = torch::ones({1}, torch::requires_grad());
    bool uses = true;
  };
  const auto make = [] { return std::make_shared<AlternateImpl>(); };
  const auto net = make();
  DataParallel model(net, {.devices = GetParam(), .factory = make});
  const auto set = [&](bool uses) {
    for (std::size_t r = 0; r < model->devices().size(); ++r) {
      dynamic_cast<AlternateImpl&>(model->group().replica(r)).uses = uses;
    }
  };
  model->forward(six()).sum().backward();
  set(false);
  model->forward(six()).sum().backward();
  set(true);
  EXPECT_THAT(
      error_of([&] { model->forward(six()); }).message,
      HasSubstr("of its own"));
}

// A loss that forward leaves for the caller in a shared list.
TEST_P(KeptGraphs, AGradientByAnotherWayIsNamed) {
  const auto losses = std::make_shared<std::vector<Tensor>>();
  const auto mutex = std::make_shared<std::mutex>();
  auto model = over([=](AnyImpl& net, const Tensor& x) {
    const auto y = x * net.weight;
    const std::lock_guard lock(*mutex);
    losses->push_back((x * net.weight).sum().cpu());
    return y;
  });
  auto loss = model->forward(six()).pow(2).sum().cpu();
  for (const Tensor& extra : *losses) {
    loss = loss + extra;
  }
  EXPECT_THAT(
      error_of([&] { loss.backward(); }).message,
      HasSubstr("by another way than from the results"));
}

// A checkpoint that computes again in backward and lets autograd accumulate.
struct AgainFunction : torch::autograd::Function<AgainFunction> {
  static Tensor forward(
      torch::autograd::AutogradContext* context,
      const Tensor& x,
      AnyImpl* net) {
    context->saved_data["net"] = reinterpret_cast<std::int64_t>(net);
    context->save_for_backward({x});
    return x * net->weight;
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& grads) {
    const torch::AutoGradMode grad(true);
    auto* net = reinterpret_cast<AnyImpl*>(context->saved_data["net"].toInt());
    const auto x = context->get_saved_variables()[0].detach().requires_grad_();
    torch::autograd::backward({x * net->weight}, {grads[0]});
    return {x.grad(), Tensor()};
  }
};

TEST_P(KeptGraphs, ABackwardInsideBackwardIsNamed) {
  auto model = over([](AnyImpl& net, const Tensor& x) {
    return AgainFunction::apply(x * net.weight, &net);
  });
  const auto loss = model->forward(six()).sum();
  EXPECT_THAT(
      error_of([&] { loss.backward(); }).message,
      HasSubstr("by another way than from the results"));
}

std::size_t nodes_before(const Tensor& tensor) {
  std::size_t count = 0;
  auto node = tensor.grad_fn();
  while (node != nullptr && node->num_outputs() > 0) {
    ++count;
    node = node->next_edge(0).function;
  }
  return count;
}

// A graph that every pass uses again grows no longer.
TEST_P(KeptGraphs, AGraphThatIsKeptDoesNotGrow) {
  auto model = over([](AnyImpl& net, const Tensor& x) {
    auto& kept = net.kept;
    if (!kept.defined()) {
      kept = net.weight * 3;
    }
    return x * kept;
  });
  std::vector<std::size_t> sizes;
  const auto x = six();
  for (int pass = 1; pass <= 20; ++pass) {
    model->forward(x).pow(2).sum().backward({}, /*retain_graph=*/true);
    sizes.push_back(nodes_before(model->module()->kept));
    EXPECT_TRUE(
        test::close(model->module()->weight.grad(), x.pow(2).sum() * 36 * pass))
        << pass;
  }
  EXPECT_EQ(sizes.back(), sizes.front());
}

} // namespace
} // namespace lockstep
