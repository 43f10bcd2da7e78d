// SPDX-License-Identifier: BSD-3-Clause
//
// make_module: modules of any class, without a clone(), whose members point at
// each other as they like, are copied by their constructor.
#include <functional>
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
#include "tests/user/support.h"

namespace program {

namespace nn = torch::nn;
using torch::Tensor;

/// As in the tutorials: no Cloneable, no reset().
struct Plain : nn::Module {
  Plain(int in, int out) {
    fc = register_module("fc", nn::Linear(in, out));
    norm = register_module("norm", nn::BatchNorm1d(out));
  }
  Tensor forward(const Tensor& x) {
    return norm(fc(x)) * scale;
  }
  nn::Linear fc = nullptr;
  nn::BatchNorm1d norm = nullptr;
  double scale = 1;
};

/// Functions of `this`, pointers to layers, layers behind a pointer, and what a
/// list registers.
struct Pointing : nn::Module {
  explicit Pointing(int width) {
    list = register_module("list", nn::ModuleList());
    for (int i = 0; i < 2; ++i) {
      layers.emplace_back(width, width);
      list->push_back(layers.back());
    }
    first = layers.front().get();
    weight = layers.back()->weight;
    behind = std::make_shared<Behind>();
    behind->fc = nn::Linear(width, width);
    list->push_back(behind->fc);
    act = [this](const Tensor& x) { return torch::tanh(x.mm(weight) * gain); };
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) {
      x = act(layer(x));
    }
    return first->forward(x) + behind->fc(x);
  }
  struct Behind {
    nn::Linear fc = nullptr;
  };
  nn::ModuleList list = nullptr;
  std::vector<nn::Linear> layers;
  nn::LinearImpl* first = nullptr;
  Tensor weight;
  std::shared_ptr<Behind> behind;
  std::function<Tensor(const Tensor&)> act;
  double gain = 2;
};

/// Two layers of classes of the program's own, one in the other.
struct Head : nn::Module {
  Head(std::shared_ptr<Plain> body_, nn::Linear last_, std::string title_)
      : body(register_module("body", std::move(body_))),
        last(register_module("last", std::move(last_))),
        title(std::move(title_)) {}
  Tensor forward(const Tensor& x) {
    return last(body->forward(x));
  }
  std::shared_ptr<Plain> body;
  nn::Linear last;
  std::string title;
};

/// A member that is a part of a registered buffer.
struct HalfOfTable : nn::Module {
  HalfOfTable() {
    table = register_buffer("table", torch::randn({8, 4}));
    fc = register_module("fc", nn::Linear(4, 4));
    half = table.narrow(0, 0, 1);
  }
  Tensor forward(const Tensor& x) {
    return fc(x) + half;
  }
  Tensor table;
  Tensor half;
  nn::Linear fc = nullptr;
};

struct ScaledImpl : nn::Cloneable<ScaledImpl> {
  explicit ScaledImpl(int width_) : width(width_) {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(width, width));
  }
  Tensor forward(const Tensor& x) {
    return fc(x) * factor;
  }
  int width = 0;
  double factor = 1;
  nn::Linear fc = nullptr;
};
TORCH_MODULE(Scaled);

} // namespace program

namespace lockstep {
namespace {

using test::close;
using test::error_of;
using test::Warnings;
using testing::HasSubstr;
using torch::Tensor;

class MadeModules : public test::AsAlone {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    MadeModules,
    testing::Values("cpu*2", "cpu*3", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(MadeModules, OfAnyClassComputeAsAlone) {
  Warnings warnings;
  expect_as_alone(make_module<program::Plain>(4, 3));
  expect_as_alone(make_module<program::Pointing>(4));
  expect_as_alone(make_module<program::Head>(
      make_module<program::Plain>(4, 4),
      make_module<torch::nn::Linear>(4, 2),
      "two layers"));
  expect_as_alone(make_module<program::Scaled>(4).ptr());
  EXPECT_EQ(warnings.text, "");
}

TEST_P(MadeModules, AreFollowedInTrainingAndEvaluation) {
  torch::manual_seed(1);
  const auto net = make_module<program::Plain>(4, 3);
  net->to(home());
  DataParallel model(net, {.devices = GetParam()});
  torch::optim::SGD sgd(model->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    model->forward(batch()).square().sum().backward();
    sgd.step();
  }
  model->eval();
  EXPECT_TRUE(close(model->forward(batch()), net->forward(batch())));
}

TEST_P(MadeModules, OfWhichAMemberChangedAreNotPassedOverInSilence) {
  const auto wrapped = [&](auto net) {
    net->to(home());
    DataParallel model(net, {.devices = GetParam()});
    const torch::NoGradGuard no_grad;
    net->eval();
    return close(model->forward(batch()), net->forward(batch()));
  };
  Warnings warnings;
  const auto plain = make_module<program::Plain>(4, 3);
  plain->scale = 3;
  EXPECT_FALSE(wrapped(plain));
  EXPECT_THAT(warnings.text, HasSubstr("Plain were changed after make_module"));
  warnings.text.clear();
  const auto body = make_module<program::Plain>(4, 4);
  body->scale = 3;
  const auto head = make_module<program::Head>(
      body,
      make_module<torch::nn::Linear>(4, 2),
      "");
  EXPECT_FALSE(wrapped(head));
  EXPECT_THAT(warnings.text, HasSubstr("were changed after make_module"));
  warnings.text.clear();
  // A clone() copies the member.
  auto scaled = make_module<program::Scaled>(4);
  scaled->factor = 3;
  EXPECT_TRUE(wrapped(scaled));
  EXPECT_EQ(warnings.text, "");
}

TEST_P(MadeModules, OfWhichALayerWasReplacedAreCopiedInAnotherWay) {
  const auto make = [&] {
    auto net = make_module<program::Scaled>(4);
    net->fc = net->replace_module("fc", torch::nn::Linear(4, 2));
    net->to(home());
    return net;
  };
  const Error error = error_of([&] {
    const auto plain = make_module<program::Plain>(4, 3);
    plain->replace_module("fc", torch::nn::Linear(4, 2));
    plain->to(home());
    DataParallel model(plain, {.devices = GetParam()});
  });
  EXPECT_THAT(error.hint, HasSubstr(".factory"));
  auto net = make();
  DataParallel model(net, {.devices = GetParam(), .factory = [&] {
                             return make().ptr();
                           }});
  EXPECT_TRUE(close(model->forward(batch()), net->forward(batch())));
}

TEST(MadeModule, IsClonedWithItsValuesTypesAndFlags) {
  const auto net = make_module<program::Plain>(4, 3);
  net->fc->bias.set_requires_grad(false);
  net->to(torch::kDouble);
  net->eval();
  torch::manual_seed(5);
  const auto expected = torch::rand({1});
  torch::manual_seed(5);
  const auto copy =
      std::dynamic_pointer_cast<program::Plain>(clone_module(*net));
  EXPECT_TRUE(torch::equal(torch::rand({1}), expected));
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(torch::equal(copy->fc->weight, net->fc->weight));
  EXPECT_FALSE(copy->fc->weight.is_alias_of(net->fc->weight));
  EXPECT_FALSE(copy->fc->bias.requires_grad());
  EXPECT_TRUE(copy->fc->weight.requires_grad());
  EXPECT_FALSE(copy->norm->is_training());
  // A copy remembers, too, and no longer needs the first.
  EXPECT_NE(clone_module(*copy), nullptr);
}

TEST(MadeModule, KeepsPartsOfABufferInItsCopies) {
  const auto net = make_module<program::HalfOfTable>();
  net->table.fill_(7);
  const auto x = torch::linspace(-1, 1, 24).view({6, 4});
  const auto copy =
      std::dynamic_pointer_cast<program::HalfOfTable>(clone_module(*net));
  EXPECT_TRUE(close(copy->forward(x), net->forward(x)));
  EXPECT_FALSE(copy->half.is_alias_of(net->half));
  DataParallel model(net, {.devices = "cpu*2"});
  net->table.fill_(3);
  EXPECT_TRUE(close(model->forward(x), net->forward(x)));
}

TEST(MadeModule, GivesACopyModulesOfItsOwn) {
  const auto net = make_module<program::Head>(
      make_module<program::Plain>(4, 4),
      make_module<torch::nn::Linear>(4, 2),
      "head");
  const auto copy =
      std::dynamic_pointer_cast<program::Head>(clone_module(*net));
  EXPECT_NE(copy->body, net->body);
  EXPECT_NE(copy->last.ptr(), net->last.ptr());
  EXPECT_EQ(copy->title, "head");
}

} // namespace
} // namespace lockstep
