// SPDX-License-Identifier: BSD-3-Clause
//
// What a module holds in several places its copies and replicas do, too, as
// Python's deepcopy and replicate keep it.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/as_alone.h"

namespace program::tied {

namespace nn = torch::nn;
using torch::Tensor;

/// A layer with LibTorch's clone().
struct Scaled : nn::Cloneable<Scaled> {
  Scaled() {
    Scaled::reset();
  }
  void reset() override {
    linear = register_module("linear", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return torch::tanh(linear(x)) * 2;
  }
  nn::Linear linear = nullptr;
};

/// The same with a clone() of its own.
struct OwnClone : lockstep::Composite<OwnClone> {
  OwnClone() : linear(4, 4) {
    register_children();
  }
  template <class Visit>
  void each_child(Visit visit) {
    visit("linear", linear);
  }
  Tensor forward(const Tensor& x) {
    return torch::tanh(linear(x)) * 2;
  }
  nn::Linear linear;
};

/// Calls what a container of any kind holds, in order.
template <class Container>
struct Through : nn::Cloneable<Through<Container>> {
  using Call = std::function<Tensor(const Container&, const Tensor&)>;

  Through(Container container, Call call_)
      : inside(std::move(container)), call(std::move(call_)) {
    this->register_module("inside", inside);
  }
  // The copy's container: what it holds comes by clone().
  void reset() override {
    inside = Container();
    this->register_module("inside", inside);
  }
  Tensor forward(const Tensor& x) {
    return call(inside, x);
  }
  Container inside;
  Call call;
};

/// Two names of one layer, given after the layers were made.
struct TwoNames : nn::Cloneable<TwoNames> {
  TwoNames() {
    TwoNames::reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
  }
  void tie() {
    b = replace_module("b", a);
  }
  Tensor forward(const Tensor& x) {
    return b(torch::tanh(a(x)));
  }
  nn::Linear a = nullptr;
  nn::Linear b = nullptr;
};

/// The same of a class with a clone() of its own, with layers of such a class.
struct TwoNamesOfOwn : lockstep::Composite<TwoNamesOfOwn> {
  TwoNamesOfOwn()
      : a(std::make_shared<OwnClone>()), b(a), layers(nn::Linear(4, 4)) {
    layers->push_back(*layers->begin());
    register_children();
  }
  template <class Visit>
  void each_child(Visit visit) {
    visit("a", a);
    visit("b", b);
    visit("layers", layers);
  }
  Tensor forward(const Tensor& x) {
    return layers->forward(b->forward(a->forward(x)));
  }
  nn::ModuleHolder<OwnClone> a;
  nn::ModuleHolder<OwnClone> b;
  nn::Sequential layers;
};

/// A layer by its name and in a Sequential, and its weight in a list.
struct InSeveralPlaces : nn::Cloneable<InSeveralPlaces> {
  InSeveralPlaces() {
    InSeveralPlaces::reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    layers = register_module("layers", nn::Sequential());
    weights = register_module("weights", nn::ParameterList());
  }
  void tie() {
    layers->push_back(a);
    layers->push_back(nn::Tanh());
    layers->push_back(a);
    weights->append(a->weight);
    weights->append(a->weight);
  }
  Tensor forward(const Tensor& x) {
    return layers->forward(a(x)).mm(weights[0]) + weights[1].sum();
  }
  nn::Linear a = nullptr;
  nn::Sequential layers = nullptr;
  nn::ParameterList weights = nullptr;
};

/// One layer of the program under two names.
struct Siamese : nn::Cloneable<Siamese> {
  Siamese() {
    Siamese::reset();
  }
  void reset() override {
    left = register_module("left", std::make_shared<Scaled>());
    right = register_module("right", std::make_shared<Scaled>());
  }
  void tie() {
    right = replace_module("right", left);
  }
  Tensor forward(const Tensor& x) {
    return right->forward(left->forward(x));
  }
  std::shared_ptr<Scaled> left;
  std::shared_ptr<Scaled> right;
};

/// Registers more than the container holds that it inherits.
struct Block : nn::SequentialImpl {
  Block() : nn::SequentialImpl(nn::Linear(4, 4), nn::Tanh()) {
    skip = register_module("skip", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) {
    return nn::SequentialImpl::forward(x) + skip(x);
  }
  nn::Linear skip = nullptr;
};

} // namespace program::tied

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::ties_of;
using torch::Tensor;

class TiedLayers : public test::AsAlone {
 protected:
  /// A copy and replicas have the module's ties, and compute as it does.
  template <class M>
  void expect_ties(
      const std::shared_ptr<M>& net,
      const ModuleFactory& factory = {}) {
    SCOPED_TRACE(net->name());
    net->to(home());
    const auto copy = std::dynamic_pointer_cast<M>(clone_module(*net));
    EXPECT_EQ(ties_of(*copy), ties_of(*net));
    EXPECT_EQ(count_parameters(*copy), count_parameters(*net));
    EXPECT_EQ(numbers(*copy, *copy).size(), numbers(*net, *net).size());
    this->expect_wrapped_as_alone(net, factory);
    const torch::NoGradGuard no_grad;
    const Tensor before = net->forward(batch()).clone();
    copy->parameters().front().add_(1);
    EXPECT_TRUE(test::close(net->forward(batch()), before));
    net->parameters().front().add_(1);
    EXPECT_TRUE(test::close(copy->forward(batch()), net->forward(batch())));
  }

 private:
  template <class M>
  std::vector<Tensor> numbers(M& model, torch::nn::Module& net) const {
    return this->numbers_of(model, net);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    TiedLayers,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

template <class Container, class Call>
auto through(const Container& container, Call call) {
  return std::make_shared<program::tied::Through<Container>>(container, call);
}

template <class Layer>
nn::Sequential twice_in_a_sequential() {
  const auto layer = std::make_shared<Layer>();
  nn::Sequential layers;
  layers->push_back("first", layer);
  layers->push_back("between", nn::Tanh());
  layers->push_back("last", layer);
  return layers;
}

Tensor forward_of(nn::Sequential layers, const Tensor& x) {
  return layers->forward(x);
}

TEST_P(TiedLayers, InASequential) {
  torch::manual_seed(1);
  expect_ties(
      through(twice_in_a_sequential<program::tied::Scaled>(), &forward_of));
  expect_ties(
      through(twice_in_a_sequential<program::tied::OwnClone>(), &forward_of));
}

TEST_P(TiedLayers, InAModuleList) {
  torch::manual_seed(2);
  for (const bool is_sequential : {false, true}) {
    nn::ModuleList list;
    const auto layer = std::make_shared<program::tied::OwnClone>();
    for (int i = 0; i < 2; ++i) {
      if (is_sequential) {
        list->push_back(nn::Sequential(layer));
      } else {
        list->push_back(layer);
      }
    }
    expect_ties(through(list, [](const nn::ModuleList& all, Tensor x) {
      for (const auto& one : *all) {
        auto* const layers = one->as<nn::Sequential>();
        x = layers == nullptr ? one->as<program::tied::OwnClone>()->forward(x)
                              : layers->forward(x);
      }
      return x;
    }));
  }
}

TEST_P(TiedLayers, InAModuleDict) {
  torch::manual_seed(3);
  const auto layer = std::make_shared<program::tied::Scaled>();
  nn::ModuleDict dict;
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
      {"a", layer},
      {"b", layer}});
  expect_ties(through(dict, [](const nn::ModuleDict& all, Tensor x) {
    for (const auto& one : *all) {
      x = one.value()->as<program::tied::Scaled>()->forward(x);
    }
    return x;
  }));
}

TEST_P(TiedLayers, InListsOfParameters) {
  torch::manual_seed(4);
  const Tensor weight = torch::rand({4, 4}).requires_grad_();
  nn::ParameterList list;
  list->append(weight);
  list->append(weight);
  expect_ties(through(list, [](const nn::ParameterList& all, const Tensor& x) {
    return x.mm(all->at(0)).tanh().mm(all->at(1));
  }));
  nn::ParameterDict dict;
  dict->insert("a", weight.detach().clone().requires_grad_());
  dict->insert("b", dict->get("a"));
  expect_ties(through(dict, [](const nn::ParameterDict& all, const Tensor& x) {
    return x.mm(all->get("a")).tanh().mm(all->get("b"));
  }));
}

TEST_P(TiedLayers, UnderTwoNames) {
  torch::manual_seed(5);
  const auto make = [] {
    auto net = std::make_shared<program::tied::TwoNames>();
    net->tie();
    return net;
  };
  expect_ties(make());
  expect_ties(make(), make);
  expect_ties(make(), [] {
    return std::make_shared<program::tied::TwoNames>();
  });
  expect_ties(std::make_shared<program::tied::TwoNamesOfOwn>());
}

// A copy for each would have numbers of its own.
TEST_P(TiedLayers, OfAClassOfTheProgramUnderTwoNamesAreRefused) {
  const auto net = std::make_shared<program::tied::Siamese>();
  net->tie();
  try {
    clone_module(*net);
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'left', 'right'"));
  }
}

TEST_P(TiedLayers, AContainerMayRegisterMore) {
  torch::manual_seed(8);
  const auto make = [] { return std::make_shared<program::tied::Block>(); };
  const auto net = make();
  net->to(home());
  expect_wrapped_as_alone(net, make);
}

TEST_P(TiedLayers, InWhatAProgramRegisters) {
  const auto net = std::make_shared<program::tied::OwnClone>();
  const Tensor scale = net->register_parameter("a", torch::ones({2}));
  net->register_parameter("b", scale);
  const auto copy = net->clone();
  const auto parameters = copy->named_parameters();
  EXPECT_TRUE(parameters["a"].is_same(copy->parameters().front()));
  EXPECT_EQ(count_parameters(*copy), count_parameters(*net));
  EXPECT_FALSE(parameters["a"].is_alias_of(scale));
}

TEST_P(TiedLayers, InPlacesOfSeveralKinds) {
  torch::manual_seed(6);
  const auto net = std::make_shared<program::tied::InSeveralPlaces>();
  net->tie();
  expect_ties(net);
}

// Not one tensor, but one memory: each has a gradient of its own.
TEST_P(TiedLayers, InMemoryThatTwoTensorsShare) {
  torch::manual_seed(7);
  const auto net = std::make_shared<program::tied::TwoNames>();
  net->to(home());
  net->b->weight.set_data(net->a->weight.detach().t());
  const auto copy =
      std::dynamic_pointer_cast<program::tied::TwoNames>(clone_module(*net));
  EXPECT_TRUE(copy->b->weight.is_alias_of(copy->a->weight));
  EXPECT_FALSE(copy->a->weight.is_alias_of(net->a->weight));
  EXPECT_FALSE(copy->b->bias.is_alias_of(copy->a->bias));
  expect_ties(net);
}

} // namespace
} // namespace lockstep
