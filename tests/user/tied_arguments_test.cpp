// SPDX-License-Identifier: BSD-3-Clause
//
// make_module: what two arguments share is one object in the copies, too.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/as_alone.h"

namespace program {

namespace nn = torch::nn;
using torch::Tensor;

/// A layer that it was given, and one of its own.
struct Coder : nn::Module {
  explicit Coder(nn::Linear given_)
      : given(register_module("given", std::move(given_))),
        own(register_module("own", nn::Linear(4, 4))) {}
  Tensor forward(const Tensor& x) {
    return own(torch::tanh(given(x)));
  }
  nn::Linear given;
  nn::Linear own;
};

struct TwoLayers : nn::Module {
  TwoLayers(nn::Linear a_, nn::Linear b_)
      : a(register_module("a", std::move(a_))),
        b(register_module("b", std::move(b_))) {}
  Tensor forward(const Tensor& x) {
    return b(torch::tanh(a(x)));
  }
  nn::Linear a;
  nn::Linear b;
};

struct TwoCoders : nn::Module {
  TwoCoders(std::shared_ptr<Coder> a_, std::shared_ptr<Coder> b_)
      : a(register_module("a", std::move(a_))),
        b(register_module("b", std::move(b_))) {}
  Tensor forward(const Tensor& x) {
    return b->forward(a->forward(x));
  }
  std::shared_ptr<Coder> a;
  std::shared_ptr<Coder> b;
};

/// A coder, and a part of it before or behind.
struct CoderAndPart : nn::Module {
  CoderAndPart(std::shared_ptr<Coder> coder_, nn::Linear part_)
      : coder(register_module("coder", std::move(coder_))),
        part(register_module("part", std::move(part_))) {}
  CoderAndPart(nn::Linear part_, std::shared_ptr<Coder> coder_)
      : CoderAndPart(std::move(coder_), std::move(part_)) {}
  Tensor forward(const Tensor& x) {
    return part(coder->forward(x));
  }
  std::shared_ptr<Coder> coder;
  nn::Linear part;
};

/// A coder, and a parameter of it.
struct CoderAndWeight : nn::Module {
  CoderAndWeight(std::shared_ptr<Coder> coder_, const Tensor& weight_)
      : coder(register_module("coder", std::move(coder_))),
        weight(register_parameter("weight", weight_)) {}
  Tensor forward(const Tensor& x) {
    return coder->forward(x).mm(weight);
  }
  std::shared_ptr<Coder> coder;
  Tensor weight;
};

} // namespace program

namespace lockstep {
namespace {

using program::Coder;
using test::close;
using test::ties_of;
using torch::Tensor;
using torch::nn::Linear;

class TiedArguments : public test::AsAlone {
 protected:
  template <class M>
  Tensor trained(M& model, const torch::nn::Module& net) const {
    torch::optim::SGD sgd(distinct(net), 0.01);
    for (int step = 0; step < 2; ++step) {
      sgd.zero_grad();
      model.forward(batch()).square().sum().backward();
      sgd.step();
    }
    return model.forward(batch()).detach();
  }

  /// A clone and replicas have the module's ties, and compute as it does, also
  /// after steps.
  template <class M>
  void expect_ties(const std::shared_ptr<M>& net, bool is_cloned = true) const {
    SCOPED_TRACE(net->name());
    net->to(home());
    const auto ties = ties_of(*net);
    const auto alone =
        is_cloned ? std::dynamic_pointer_cast<M>(clone_module(*net)) : nullptr;
    DataParallel<M> model(net, {.devices = GetParam()});
    EXPECT_EQ(ties_of(model->group().replica(1)), ties);
    const Tensor together = trained(*model, *net);
    EXPECT_TRUE(close(together, net->forward(batch())));
    if (is_cloned) {
      EXPECT_EQ(ties_of(*alone), ties);
      EXPECT_TRUE(close(trained(*alone, *alone), together));
    }
  }

 private:
  static std::vector<Tensor> distinct(const torch::nn::Module& net) {
    const auto all = net.parameters();
    const auto ties = ties_of(net);
    std::vector<Tensor> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (ties[i] == i) {
        found.push_back(all[i]);
      }
    }
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    TiedArguments,
    testing::Values("cpu*2", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(TiedArguments, AModuleThatIsGivenTwice) {
  const auto made = make_module<Linear>(4, 4);
  expect_ties(make_module<program::TwoLayers>(made, made));
  const Linear plain(4, 4);
  expect_ties(make_module<program::TwoLayers>(plain, plain), false);
}

TEST_P(TiedArguments, APartOfBothArguments) {
  const auto layer = make_module<Linear>(4, 4);
  const auto a = make_module<Coder>(layer);
  const auto b = make_module<Coder>(layer);
  expect_ties(make_module<program::TwoCoders>(a, b));
  expect_ties(make_module<program::TwoCoders>(a, a));
}

TEST_P(TiedArguments, AnArgumentThatIsAPartOfAnother) {
  const auto coder = make_module<Coder>(make_module<Linear>(4, 4));
  for (const Linear& part : {coder->given, coder->own}) {
    expect_ties(make_module<program::CoderAndPart>(coder, part));
    expect_ties(make_module<program::CoderAndPart>(part, coder));
  }
  expect_ties(make_module<program::CoderAndWeight>(coder, coder->own->weight));
}

TEST_P(TiedArguments, ModulesInsideOfModulesThatWereMade) {
  const auto layer = make_module<Linear>(4, 4);
  const auto inner =
      make_module<program::CoderAndPart>(make_module<Coder>(layer), layer);
  expect_ties(inner);
  const auto again =
      std::dynamic_pointer_cast<program::CoderAndPart>(clone_module(*inner));
  expect_ties(again); // a copy remembers the same
  EXPECT_FALSE(again->part->weight.is_same(layer->weight));
}

// The copy's own tensors take the place of those in its arguments.
TEST(MadeModule, ThatWasGivenTensorsIsCloned) {
  const auto weight = torch::tensor({1.0F, 2.0F});
  const auto loss = make_module<torch::nn::CrossEntropyLoss>(
      torch::nn::CrossEntropyLossOptions().weight(weight));
  const auto copy = std::dynamic_pointer_cast<torch::nn::CrossEntropyLossImpl>(
      clone_module(*loss));
  EXPECT_TRUE(torch::equal(copy->weight, weight));
  EXPECT_FALSE(copy->weight.is_alias_of(weight));
  const auto table = torch::rand({3, 2});
  const auto embedding = make_module<torch::nn::Embedding>(
      torch::nn::EmbeddingOptions(3, 2)._weight(table));
  const auto other = std::dynamic_pointer_cast<torch::nn::EmbeddingImpl>(
      clone_module(*embedding));
  EXPECT_TRUE(torch::equal(other->weight, table));
  EXPECT_FALSE(other->weight.is_alias_of(embedding->weight));
}

} // namespace
} // namespace lockstep
