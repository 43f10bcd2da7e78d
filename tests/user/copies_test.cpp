// SPDX-License-Identifier: BSD-3-Clause
//
// What replicas are copies of: classes that inherit their clone(), members that
// look at a parameter's memory, buffers that come later.
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/user/programs.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using Tensor = torch::Tensor;
using test::close;
using test::error_of;
using test::Warnings;
using testing::HasSubstr;

class Copies : public test::OnDevices {
 protected:
  Tensor eight() {
    return here(torch::linspace(-1, 1, 32).view({8, 4}));
  }
  // The error of wrapping `net`.
  template <class Net>
  Error refused(Net net) {
    net->to(home());
    return error_of([&] { DataParallel model(net, {.devices = GetParam()}); });
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    Copies,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

struct TenfoldImpl : nn::LinearImpl {
  using nn::LinearImpl::LinearImpl;
  Tensor forward(const Tensor& x) {
    return nn::LinearImpl::forward(x) * 10;
  }
};
TORCH_MODULE(Tenfold);

// clone() of a class that inherits it makes the base class.
TEST_P(Copies, ALayerThatInheritsItsCloneIsNamed) {
  const nn::Sequential stack(Tenfold(4, 4), nn::ReLU());
  const Error error = refused(stack);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("cannot be cloned"));
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
  EXPECT_THAT(refused(Tenfold(4, 4)).message, HasSubstr("cannot be cloned"));
}

struct ListedImpl : nn::Cloneable<ListedImpl> {
  ListedImpl() {
    reset();
  }
  void reset() override {
    layers = register_module("layers", nn::ModuleList());
    layers->push_back(Tenfold(4, 4));
    layers->push_back(Tenfold(4, 4));
  }
  Tensor forward(Tensor x) {
    for (const auto& layer : *layers) {
      x = layer->as<Tenfold>()->forward(x);
    }
    return x;
  }
  nn::ModuleList layers = nullptr;
};

// Made again by its constructor, which knows the layers.
TEST_P(Copies, AListOfSuchLayersIsConstructedAgain) {
  auto net = std::make_shared<ListedImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  for (int step = 0; step < 2; ++step) {
    net->zero_grad();
    const auto expected = net->forward(eight());
    expected.sum().backward();
    const auto grad = net->parameters()[0].grad().clone();
    net->zero_grad();
    const auto got = model->forward(eight());
    got.sum().backward();
    EXPECT_TRUE(close(got, expected));
    EXPECT_TRUE(torch::allclose(
        net->parameters()[0].grad().cpu(),
        grad.cpu(),
        1e-4,
        1e-3));
  }
}

struct BaseImpl : nn::Cloneable<BaseImpl> {
  BaseImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  virtual Tensor forward(const Tensor& x) {
    return fc->forward(x);
  }
  nn::Linear fc = nullptr;
};
struct DerivedImpl : BaseImpl {
  Tensor forward(const Tensor& x) override {
    return fc->forward(x) * 10;
  }
};

TEST_P(Copies, ADerivedModuleIsNotSlicedToItsBase) {
  const std::shared_ptr<BaseImpl> net = std::make_shared<DerivedImpl>();
  EXPECT_THAT(refused(net).message, HasSubstr("cannot be cloned"));
  net->to(home());
  DataParallel<BaseImpl> model(net, {.devices = GetParam(), .factory = [] {
                                       return std::make_shared<DerivedImpl>();
                                     }});
  EXPECT_TRUE(close(model->forward(eight()), net->forward(eight())));
}

struct PairImpl : nn::Module {
  explicit PairImpl(bool is_tied) {
    a = register_parameter("a", torch::ones({4}));
    b = register_parameter("b", is_tied ? a : torch::ones({4}));
  }
  Tensor forward(const Tensor& x) {
    return x * a + b;
  }
  Tensor a = {};
  Tensor b = {};
};

TEST_P(Copies, AFactoryThatTiesWhatTheModuleDoesNotIsNamed) {
  const auto net = std::make_shared<PairImpl>(false);
  net->to(home());
  const Error error = error_of([&] {
    DataParallel model(net, {.devices = GetParam(), .factory = [] {
                               return std::make_shared<PairImpl>(true);
                             }});
  });
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.message, HasSubstr("'a' and 'b' are two parameters"));
}

struct LazyImpl : nn::Cloneable<LazyImpl> {
  LazyImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    scale = Tensor();
  }
  Tensor forward(const Tensor& x) {
    if (!scale.defined()) {
      scale = register_buffer("scale", torch::ones({4}, x.options()));
    }
    return fc->forward(x) * scale;
  }
  nn::Linear fc = nullptr;
  Tensor scale = {};
};

TEST_P(Copies, ABufferThatForwardRegistersIsFollowed) {
  auto net = std::make_shared<LazyImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  model->forward(eight());
  net->scale.fill_(5);
  EXPECT_TRUE(close(model->forward(eight()), net->forward(eight())));
}

TEST_P(Copies, ABufferThatTheProgramRegistersIsNeverMissed) {
  auto net = std::make_shared<LazyImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  net->scale = net->register_buffer("scale", here(torch::full({4}, 3.0)));
  const Error error = error_of([&] { model->forward(eight()); });
  EXPECT_THAT(error.message, HasSubstr("number of buffers"));
}

template <bool kHasParameter>
struct LazyHead : nn::Cloneable<LazyHead<kHasParameter>> {
  LazyHead() {
    reset();
  }
  void reset() override {
    fc = this->register_module("fc", nn::Linear(4, 4));
    head = nullptr;
    scale = Tensor();
  }
  Tensor forward(const Tensor& x) {
    if (kHasParameter && !scale.defined()) {
      scale = this->register_parameter("scale", torch::randn_like(x[0]));
    } else if (!kHasParameter && head.is_empty()) {
      head = this->register_module("head", nn::Linear(4, 4));
      head->to(x.device());
    }
    return kHasParameter ? fc(x) * scale : head(fc(x));
  }
  nn::Linear fc = nullptr;
  nn::Linear head = nullptr;
  Tensor scale = {};
};

template <bool kHasParameter>
void expect_late_is_named(const char* devices, const Tensor& x) {
  using Net = LazyHead<kHasParameter>;
  const torch::NoGradGuard no_grad;
  const auto make = [&x] {
    auto net = std::make_shared<Net>();
    net->to(x.device());
    return net;
  };
  const auto net = make();
  DataParallel<Net> model(net, {.devices = devices});
  const Error error = error_of([&] { model->forward(x); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(
      error.message,
      HasSubstr(kHasParameter ? "registered 'scale'" : "registered 'head'"));
  EXPECT_THAT(error.hint, HasSubstr("one pass before wrapping"));
  EXPECT_EQ(error_of([&] { model->forward(x); }).code, ErrorCode::kUnsupported);
  // As the hint says.
  DataParallel<Net> second(net, {.devices = devices, .factory = [&] {
                                   auto made = make();
                                   made->forward(x);
                                   return made;
                                 }});
  EXPECT_TRUE(close(second->forward(x), net->forward(x)));
}

TEST_P(Copies, WhatForwardRegistersInEachReplicaIsNamed) {
  expect_late_is_named<false>(GetParam(), eight());
  expect_late_is_named<true>(GetParam(), eight());
}

struct ConvertsImpl : nn::Cloneable<ConvertsImpl> {
  ConvertsImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    is_converted = false;
  }
  Tensor forward(const Tensor& x) {
    if (!is_converted) {
      fc = replace_module("fc", nn::Linear(4, 4));
      fc->to(x.device());
      is_converted = true;
    }
    return fc(x);
  }
  nn::Linear fc = nullptr;
  bool is_converted = false;
};

TEST_P(Copies, WhatForwardReplacesInEachReplicaIsNamed) {
  const auto net = std::make_shared<ConvertsImpl>();
  net->to(home());
  DataParallel<ConvertsImpl> model(net, {.devices = GetParam()});
  const Error error = error_of([&] { model->forward(eight()); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("registered 'fc'"));
}

TEST_P(Copies, AnAssignedBufferIsWarnedOf) {
  nn::BatchNorm1d net(4);
  net->running_mean = torch::full({4}, 3.0);
  net->to(home());
  Warnings warnings;
  const DataParallel model(net, {.devices = GetParam()});
  EXPECT_THAT(warnings.text, HasSubstr("the registered 'running_mean'"));
}

TEST_P(Copies, ALayerAssignedAfterWrappingIsWarnedOfInEvaluation) {
  auto net = std::make_shared<BaseImpl>();
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  net->fc = nn::Linear(4, 2);
  net->fc->to(home());
  const torch::NoGradGuard no_grad;
  Warnings warnings;
  try {
    model->forward(eight());
  } catch (const std::exception&) {
    // Replicas have another width.
  }
  EXPECT_THAT(warnings.text, HasSubstr("replace_module"));
}

} // namespace
} // namespace lockstep
