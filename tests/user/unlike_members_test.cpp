// SPDX-License-Identifier: BSD-3-Clause
//
// Tensors of members that are not registered: where each copy has others, that
// is said.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "tests/user/support.h"

namespace program {

namespace nn = torch::nn;
using torch::Tensor;

template <class Self>
struct Net : nn::Cloneable<Self> {
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
};

/// Random features, in a child.
struct Features : Net<Features> {
  Features() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    projection = torch::randn({4, 3});
  }
  Tensor projection;
};
struct OfAChild : Net<OfAChild> {
  OfAChild() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    features = register_module("features", std::make_shared<Features>());
  }
  std::shared_ptr<Features> features;
};
/// A layer that is frozen, and kept out of parameters().
struct Frozen : Net<Frozen> {
  Frozen() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    frozen = nn::Linear(4, 3);
  }
  nn::Linear frozen = nullptr;
};
struct InitialWeight : Net<InitialWeight> {
  InitialWeight() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 3));
    initial = fc->weight.detach().clone();
  }
  Tensor initial;
};
struct HalfOfBuffer : Net<HalfOfBuffer> {
  HalfOfBuffer() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    table = register_buffer("table", torch::randn({8, 3}));
    half = table.narrow(0, 0, 4);
  }
  Tensor table, half;
};
/// Behind a pointer no member can be seen.
struct Behind : Net<Behind> {
  explicit Behind(int /*unused*/) {
    reset();
  }
  void reset() override {
    layers = std::make_shared<std::vector<nn::Linear>>();
    list = register_module("list", nn::ModuleList());
    layers->emplace_back(4, 3);
    list->push_back(layers->front());
  }
  std::shared_ptr<std::vector<nn::Linear>> layers;
  nn::ModuleList list = nullptr;
};
/// No Cloneable: it is constructed.
struct Constructed : nn::Module {
  Constructed() {
    fc = register_module("fc", nn::Linear(4, 4));
    projection = torch::rand({4, 3});
  }
  Tensor forward(const Tensor& x) {
    return fc(x);
  }
  nn::Linear fc = nullptr;
  Tensor projection;
};

/// The same in every copy.
struct Positions : Net<Positions> {
  Positions() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    positions = torch::arange(4).to(torch::kFloat).unsqueeze(1) / 4;
  }
  Tensor positions;
};
struct Registered : Net<Registered> {
  Registered() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
    noise = register_buffer("noise", torch::randn({4, 3}));
    weight = fc->weight.view({2, 8}); // of what is registered
  }
  Tensor noise, weight;
};
/// What the constructor was given stays the module's.
struct Given : Net<Given> {
  explicit Given(const Tensor& given) : mask(given) {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(4, 4));
  }
  Tensor mask;
};

} // namespace program

namespace lockstep {
namespace {

using testing::HasSubstr;

template <class Net>
std::string said_of(const std::shared_ptr<Net>& net, const char* devices) {
  const test::Warnings warnings;
  const DataParallel model(net, {.devices = devices});
  return warnings.text;
}

class UnlikeMembers : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    UnlikeMembers,
    testing::Values("cpu*2", "cpu*3"),
    [](const auto& param) { return "cpu" + std::string(1, param.param[4]); });

TEST_P(UnlikeMembers, AreSaidWithTheirShapes) {
  const auto expect_said = [](const auto& net, const std::string& shape) {
    const std::string said = said_of(net, GetParam());
    EXPECT_THAT(said, HasSubstr("not registered (Float " + shape)) << *net;
    EXPECT_EQ(said.find("not registered"), said.rfind("not registered"));
  };
  expect_said(std::make_shared<program::Features>(), "[4, 3]");
  expect_said(std::make_shared<program::OfAChild>(), "[4, 3]");
  expect_said(std::make_shared<program::Frozen>(), "[3, 4]");
  expect_said(std::make_shared<program::InitialWeight>(), "[3, 4]");
  expect_said(std::make_shared<program::HalfOfBuffer>(), "[4, 3]");
  expect_said(std::make_shared<program::Behind>(1), "[3, 4]");
  expect_said(std::make_shared<program::Constructed>(), "[4, 3]");
}

TEST_P(UnlikeMembers, AreNotWhatEveryCopyHas) {
  const auto said = [](const auto& net) { return said_of(net, GetParam()); };
  EXPECT_EQ(said(std::make_shared<program::Positions>()), "");
  EXPECT_EQ(said(std::make_shared<program::Given>(torch::randn({4, 4}))), "");
  EXPECT_THAT(
      said(std::make_shared<program::Registered>()),
      testing::Not(HasSubstr("[4, 3]")));
}

TEST(UnlikeMembers, AreSaidOfACopyToo) {
  const test::Warnings warnings;
  const program::Frozen net;
  clone_module(net);
  EXPECT_THAT(warnings.text, HasSubstr("not registered"));
}

// The program draws what it would draw without a copy.
TEST(UnlikeMembers, DrawNoRandomNumbersOfTheProgram) {
  const auto net = std::make_shared<program::Features>();
  torch::manual_seed(3);
  const torch::Tensor expected = torch::rand({4});
  torch::manual_seed(3);
  said_of(net, "cpu*2");
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

} // namespace
} // namespace lockstep
