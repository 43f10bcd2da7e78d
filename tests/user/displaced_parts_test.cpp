// SPDX-License-Identifier: BSD-3-Clause
//
// Members that hold what only a child registers: layers in a list, the weight
// of a layer. LibTorch's clone() leaves them with other, random ones.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/as_alone.h"
#include "tests/user/given_nets.h"
#include "tests/user/support.h"

// Each class makes its parts in reset(). Those with an argument cannot be
// constructed again by DataParallel.
namespace program {

template <class... Arguments>
struct InList : nn::Cloneable<InList<Arguments...>> {
  explicit InList(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    layers.clear();
    list = this->register_module("list", nn::ModuleList());
    for (int i = 0; i < 2; ++i) {
      const nn::Linear layer(4, 4);
      layers.push_back(layer);
      list->push_back(layer);
    }
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) {
      x = torch::tanh(layer(x));
    }
    return x;
  }
  std::vector<nn::Linear> layers;
  nn::ModuleList list = nullptr;
};

template <class... Arguments>
struct InSequential : nn::Cloneable<InSequential<Arguments...>> {
  explicit InSequential(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    a = nn::Linear(4, 4);
    b = nn::Linear(4, 4);
    stack = this->register_module("list", nn::Sequential(a, nn::Tanh(), b));
  }
  Tensor forward(const Tensor& x) {
    return b(torch::tanh(a(x)));
  }
  nn::Linear a = nullptr;
  nn::Linear b = nullptr;
  nn::Sequential stack = nullptr;
};

template <class... Arguments>
struct InDict : nn::Cloneable<InDict<Arguments...>> {
  explicit InDict(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    a = nn::Linear(4, 4);
    dict = this->register_module("list", nn::ModuleDict());
    using Named = std::pair<std::string, std::shared_ptr<nn::Module>>;
    dict->update(std::vector<Named>{{"0", a.ptr()}});
  }
  Tensor forward(const Tensor& x) {
    return a(x);
  }
  nn::Linear a = nullptr;
  nn::ModuleDict dict = nullptr;
};

template <class... Arguments>
struct InParameters : nn::Cloneable<InParameters<Arguments...>> {
  explicit InParameters(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    w = torch::randn({4}, torch::requires_grad());
    list = this->register_module("list", nn::ParameterList());
    list->append(w);
  }
  Tensor forward(const Tensor& x) {
    return x * w;
  }
  Tensor w;
  nn::ParameterList list = nullptr;
};

/// Without a tensor, but with a mode.
template <class... Arguments>
struct DropoutInList : nn::Cloneable<DropoutInList<Arguments...>> {
  explicit DropoutInList(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    drop = nn::Dropout(0.5);
    list = this->register_module("list", nn::ModuleList());
    list->push_back(drop);
    fc = this->register_module("fc", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return drop(fc(x));
  }
  nn::Dropout drop = nullptr;
  nn::ModuleList list = nullptr;
  nn::Linear fc = nullptr;
};

template <class... Arguments>
struct WeightOfLayer : nn::Cloneable<WeightOfLayer<Arguments...>> {
  explicit WeightOfLayer(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    fc = this->register_module("list", nn::Linear(4, 4));
    w = fc->weight;
  }
  Tensor forward(const Tensor& x) {
    return fc(x).mm(w);
  }
  nn::Linear fc = nullptr;
  Tensor w;
};

template <class... Arguments>
struct BufferOfLayer : nn::Cloneable<BufferOfLayer<Arguments...>> {
  explicit BufferOfLayer(Arguments... /*unused*/) {
    reset();
    torch::nn::init::constant_(mean, 3);
  }
  void reset() override {
    norm = this->register_module("list", nn::BatchNorm1d(4));
    mean = norm->running_mean;
  }
  Tensor forward(const Tensor& x) {
    return norm(x) + mean;
  }
  nn::BatchNorm1d norm = nullptr;
  Tensor mean;
};

/// What a nested block registers.
template <class... Arguments>
struct OfBlock : nn::Cloneable<OfBlock<Arguments...>> {
  explicit OfBlock(Arguments... /*unused*/) {
    reset();
  }
  void reset() override {
    block = this->register_module("list", std::make_shared<Backbone>());
    tap = block->a;
    w = block->b->weight;
  }
  Tensor forward(const Tensor& x) {
    return tap(block->forward(x)) + x.mm(w);
  }
  std::shared_ptr<Backbone> block;
  nn::Linear tap = nullptr;
  Tensor w;
};

} // namespace program

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::close;
using test::error_of;
using test::seeded;
using test::Warnings;
using testing::HasSubstr;
using torch::Tensor;

class DisplacedParts : public test::AsAlone {
 protected:
  /// A class that DataParallel can construct, and one that it cannot.
  template <template <class...> class Net>
  void expect_right() {
    expect_wrapped_as_alone(seeded<Net<>>());
    expect_told<Net<>>();
    const auto net = seeded<Net<int>>(1);
    SCOPED_TRACE(net->name());
    net->to(home());
    const auto names = test::names_of(*net);
    const Error error =
        error_of([&] { DataParallel model(net, {.devices = GetParam()}); });
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr("'list."));
    EXPECT_THAT(error.message, HasSubstr("a name of its own"));
    EXPECT_THAT(error.hint, HasSubstr(".factory"));
    EXPECT_THAT(
        test::torch_error([&] { clone_module(*net); }),
        HasSubstr("'list."));
    EXPECT_EQ(test::names_of(*net), names);
    expect_wrapped_as_alone(net, [] { return seeded<Net<int>>(1); });
  }
  /// What the program changed since is not in what is constructed.
  template <class Net>
  void expect_told() {
    const auto net = seeded<Net>();
    net->to(home());
    const Warnings warnings;
    const DataParallel model(net, {.devices = GetParam()});
    EXPECT_THAT(warnings.text, HasSubstr("are constructed anew"));
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    DisplacedParts,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(DisplacedParts, AreMadeByTheConstructorOrNamed) {
  expect_right<program::InList>();
  expect_right<program::InSequential>();
  expect_right<program::InDict>();
  expect_right<program::InParameters>();
  expect_right<program::DropoutInList>();
  expect_right<program::WeightOfLayer>();
  expect_right<program::BufferOfLayer>();
  expect_right<program::OfBlock>();
}

/// A block, and what its parent registers of it.
TEST_P(DisplacedParts, OfANestedBlockAreNamedByTheirPath) {
  const auto net = seeded<program::Parent<program::InList<>>>();
  const std::string error = test::torch_error([&] { clone_module(*net); });
  EXPECT_THAT(error, HasSubstr("'child.list.0', 'child.list.1'"));
  expect_wrapped_as_alone(net);
}

/// The remedy that the error names.
struct UnderTwoNames : nn::Cloneable<UnderTwoNames> {
  explicit UnderTwoNames(int /*unused*/) {
    reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::BatchNorm1d(4));
    stack = register_module("stack", nn::Sequential(a, b));
    w = register_parameter("w", a->weight);
  }
  Tensor forward(const Tensor& x) {
    return b(a(x)).mm(w) + stack->forward(x);
  }
  nn::Linear a = nullptr;
  nn::BatchNorm1d b = nullptr;
  nn::Sequential stack = nullptr;
  Tensor w;
};

TEST_P(DisplacedParts, UnderANameOfTheirOwnAreNone) {
  expect_as_alone(seeded<UnderTwoNames>(1));
}

/// Who else holds the net's parts does not matter.
TEST_P(DisplacedParts, AreNotThoseThatTheProgramHolds) {
  for (const auto& net : std::vector<std::shared_ptr<nn::Module>>{
           seeded<program::Parent<program::Backbone>>(),
           seeded<UnderTwoNames>(1)}) {
    net->to(home());
    const auto modules = net->modules();
    const auto parameters = net->parameters();
    const auto buffers = net->buffers();
    const auto copy = clone_module(*net);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(close(copy->parameters().at(i), parameters[i])) << i;
    }
  }
}

} // namespace
} // namespace lockstep
