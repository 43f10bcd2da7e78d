// SPDX-License-Identifier: BSD-3-Clause
//
// Inputs that forward, or the caller, changes in place.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::close;
using test::error_of;
using testing::HasSubstr;

class Inputs : public test::OnDevices {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Inputs,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

using test::any;
using test::AnyImpl;
using test::expect_same;
using test::times_weight;

// The first layer works in place.
struct InPlaceImpl : nn::Cloneable<InPlaceImpl> {
  InPlaceImpl() {
    reset();
  }
  void reset() override {
    torch::manual_seed(2);
    fc = register_module("fc", nn::Linear(4, 3));
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(torch::relu_(const_cast<Tensor&>(x)));
  }
  nn::Linear fc = nullptr;
};

TEST_P(Inputs, AFirstLayerInPlaceWorksAsOnOneDevice) {
  const auto run = [&](auto& module, bool again) {
    const auto leaf =
        here(torch::linspace(-1, 1, 24).view({6, 4})).requires_grad_();
    const auto x = leaf * 2;
    auto loss = module->forward(x).pow(2).sum();
    if (again) {
      loss = loss + (x * 3).sum(); // x is relu(leaf * 2) now
    }
    loss.backward();
    return std::vector<Tensor>{loss.detach(), leaf.grad(), x.detach()};
  };
  for (const bool again : {false, true}) {
    auto alone = std::make_shared<InPlaceImpl>();
    alone->to(home());
    auto net = std::make_shared<InPlaceImpl>();
    net->to(home());
    DataParallel model(net, {.devices = GetParam()});
    const auto expected = run(alone, again);
    const auto got = run(model, again);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(got[i], expected[i])) << i << " again " << again;
    }
    EXPECT_TRUE(close(net->fc->weight.grad(), alone->fc->weight.grad()));
  }
}

TEST_P(Inputs, AFirstLayerInPlaceChangesTheCallersBatch) {
  auto net = std::make_shared<InPlaceImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::linspace(-1, 1, 24).view({6, 4}));
  const auto expected = x.clone().relu();
  model->forward(x).sum().backward();
  EXPECT_TRUE(close(x, expected));
}

TEST_P(Inputs, AFirstLayerInPlaceOnALeafIsLibTorchsError) {
  auto net = std::make_shared<InPlaceImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4})).requires_grad_();
  EXPECT_THAT(
      error_of([&] { model->forward(x); }).message,
      HasSubstr("a leaf Variable that requires grad"));
  const auto y = here(torch::ones({24}).requires_grad_() * 2).view({6, 4});
  EXPECT_THAT(
      error_of([&] { model->forward(y); }).message,
      HasSubstr("forward changes input 0 in place"));
}

// A reused input buffer: what backward needs is gone, on one device, too.
TEST_P(Inputs, ABatchOverwrittenBeforeBackwardIsTheErrorOfOneDevice) {
  const auto net = any(times_weight, home());
  DataParallel model(net, {.devices = GetParam(), .factory = [&] {
                             return any(times_weight, home());
                           }});
  const auto x = here(torch::ones({6, 1}));
  const auto loss = model->forward(x).sum();
  x.fill_(100);
  std::string text;
  try {
    text = test::torch_error([&] { loss.backward(); });
  } catch (const Exception& e) {
    text = e.what();
  }
  EXPECT_THAT(text, HasSubstr("has been modified by an inplace operation"));
}

// On the host one device works on a copy: x keeps its values and its graph.
TEST_P(Inputs, AnInputFromTheHostIsNotChanged) {
  expect_same(
      GetParam(),
      [](AnyImpl& net, const Tensor& x) {
        const auto copy = x.to(net.weight.device());
        return copy.relu_() * net.weight;
      },
      [&](const auto& forward, AnyImpl& net) {
        const auto leaf = torch::ones({6, 1}).requires_grad_();
        const auto x = leaf * 2;
        const auto out = forward(x);
        (out.sum().cpu() + x.sum().cpu()).backward();
        return std::vector<Tensor>{leaf.grad(), net.weight.grad(), x.detach()};
      });
}

TEST_P(Inputs, AChangedInputMayGainAGradient) {
  expect_same(
      GetParam(),
      [](AnyImpl& net, const Tensor& x) {
        return const_cast<Tensor&>(x).mul_(net.weight) + 0;
      },
      [&](const auto& forward, AnyImpl& net) {
        const auto x = here(torch::ones({6, 1}));
        const auto out = forward(x);
        (out + 2 * x).sum().backward();
        return std::vector<Tensor>{net.weight.grad(), x.detach()};
      });
}

TEST_P(Inputs, AChangedInputThatRetainsItsGradientIsNamed) {
  auto net = std::make_shared<InPlaceImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto x = here(torch::ones({6, 4})).requires_grad_() * 3;
  x.retain_grad();
  EXPECT_THAT(
      error_of([&] { model->forward(x); }).message,
      HasSubstr("which retains its gradient"));
}

TEST_P(Inputs, AChangedInputInInferenceMode) {
  expect_same(
      GetParam(),
      [](AnyImpl& net, const Tensor& x) {
        return const_cast<Tensor&>(x).add_(1) * net.weight;
      },
      [&](const auto& forward, AnyImpl&) {
        const auto x = here(torch::ones({6, 1}));
        const c10::InferenceMode inference;
        const auto out = forward(x);
        return std::vector<Tensor>{out.clone(), x.clone()};
      });
}

TEST_P(Inputs, AChangeOfShapeIsNamed) {
  const auto unsqueezed = [](AnyImpl& net, const Tensor& x) {
    return const_cast<Tensor&>(x).unsqueeze_(1) * net.weight;
  };
  const auto net = any(unsqueezed, home());
  DataParallel model(net, {.devices = GetParam(), .factory = [&] {
                             return any(unsqueezed, home());
                           }});
  EXPECT_THAT(
      error_of([&] {
        model->forward(here(torch::ones({6, 2})));
      }).message,
      HasSubstr("forward changes input 0 in place, to another shape"));
}

TEST_P(Inputs, ThatShareMemoryCannotBeChanged) {
  struct TwoImpl : nn::Cloneable<TwoImpl> {
    void reset() override {}
    Tensor forward(Tensor a, const Tensor& b) {
      return a.mul_(3) * b;
    }
  };
  DataParallel model(std::make_shared<TwoImpl>(), {.devices = GetParam()});
  const auto x = here(torch::ones({6, 1}));
  EXPECT_THAT(
      error_of([&] { model->forward(x, x); }).message,
      HasSubstr("whose memory another input shares"));
}

// Values change, the graph does not: an attack on a model does so.
TEST_P(Inputs, ALeafChangedWithoutAGraph) {
  for (const bool by_detach : {false, true}) {
    expect_same(
        GetParam(),
        [by_detach](AnyImpl& net, const Tensor& x) {
          if (by_detach) {
            x.detach().clamp_(0, 2);
          } else {
            const torch::NoGradGuard no_grad;
            const_cast<Tensor&>(x).clamp_(0, 2);
          }
          return (x * net.weight).pow(2);
        },
        [&](const auto& forward, AnyImpl&) {
          auto x = here(torch::linspace(-1, 3, 6).view({6, 1}));
          x.requires_grad_();
          forward(x).sum().backward();
          EXPECT_TRUE(x.is_leaf());
          return std::vector<Tensor>{x.grad(), x.detach()};
        });
  }
}

TEST_P(Inputs, ASquareBatchTurnedInPlaceIsNamed) {
  const auto turned = [](AnyImpl& net, const Tensor& x) {
    return const_cast<Tensor&>(x).t_() * net.weight;
  };
  DataParallel model(
      any(turned, home()),
      {.devices = GetParam(), .factory = [&] { return any(turned, home()); }});
  const auto shards = static_cast<std::int64_t>(model->devices().size());
  EXPECT_THAT(
      error_of([&] {
        model->forward(here(torch::ones({3 * shards, 3})));
      }).message,
      HasSubstr("in place, to another shape"));
}

} // namespace
} // namespace lockstep
