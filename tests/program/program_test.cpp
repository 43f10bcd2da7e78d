// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/program.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/checkpoint.h"
#include "tests/program/program_cases.h"

namespace lockstep {
namespace {

using test::error_of;

TEST(Program, IsAModuleWithPythonsNames) {
  const Program net = test::load_net("cnn");
  EXPECT_EQ(
      state_dict(*net).keys(),
      test::load_case("cnn", "sgd").state.keys());
  EXPECT_EQ(net->parameters().size(), 10U);
  EXPECT_TRUE(net->parameters()[0].requires_grad());
  EXPECT_EQ(net->inputs().at(0).name, "x");
  EXPECT_FALSE(net->inputs()[0].sizes.at(0).fixed);
  EXPECT_EQ(net->inputs()[0].sizes.at(1).fixed, 3);
  EXPECT_EQ(net->outputs().at(0).sizes.at(1).fixed, 10);
}

TEST(Program, ItsFileIsACheckpointOfItsWeights) {
  const std::string path = test::program_folder("sgd") / "cnn.pt2";
  Program net = test::load_net("cnn");
  const StateDict before = state_dict(*test::load_net("cnn"));
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      parameter.zero_();
    }
  }
  load_weights(*net, path);
  EXPECT_THAT(test::differences(*net, before), testing::IsEmpty());
}

TEST(Program, TiedWeightsAreOneTensor) {
  const Program net = test::load_net("tied");
  const auto named = net->named_parameters();
  EXPECT_TRUE(named["head.weight"].is_same(named["words.weight"]));
}

TEST(Program, BuffersThatAreNotSavedStayOutOfTheStateDict) {
  Program net = test::load_net("text");
  EXPECT_FALSE(state_dict(*net).get("place").defined());
  ASSERT_EQ(net->unsaved_tensors().size(), 1U);
  EXPECT_EQ(net->unsaved_tensors()[0].first, "place");
  net->to(at::kDouble);
  EXPECT_EQ(net->unsaved_tensors()[0].second.scalar_type(), at::kDouble);
}

TEST(Program, SizesMustFit) {
  Program net = test::load_net("cnn");
  EXPECT_THAT(
      error_of([&] {
        net->forward(torch::rand({4, 3, 20, 16}));
      }),
      testing::HasSubstr(
          "input 'x' size 2 is 20, exported for 16. Hint: export with "
          "dynamic_shapes={'x': {2: torch.export.Dim('size')}}"));
  EXPECT_THAT(
      error_of([&] {
        net->forward(torch::rand({4, 3, 16}));
      }),
      testing::HasSubstr("expected 4 dimensions, got 3"));
  EXPECT_THAT(
      error_of([&] {
        net->forward(torch::rand({2000, 3, 16, 16}));
      }),
      testing::HasSubstr("input 'x' size 0 is 2000; exported for 2 to 1024"));
  EXPECT_EQ(net->forward(torch::rand({7, 3, 16, 16})).size(0), 7);
}

TEST(Program, ArgumentsMustHaveTheirStructure) {
  Program net = test::load_net("results");
  const auto points = ProgramValue::dict({{"points", torch::rand({4, 8})}});
  const auto call = [&](const ProgramArguments& arguments) {
    return error_of([&] { net->forward(arguments); });
  };
  EXPECT_THAT(call({}), testing::HasSubstr("argument 'batch' is missing"));
  EXPECT_THAT(
      call({.args = {torch::rand({4, 8})}}),
      testing::HasSubstr("expected {'points': a value}, got tensor"));
  EXPECT_THAT(
      call({.args = {points}}),
      testing::HasSubstr("forward(batch: {'points': a value}, scale)"));
  EXPECT_THAT(
      call({.args = {points}, .kwargs = {{"scale", 2}}}),
      testing::HasSubstr("input 'scale': expected a tensor, got 2"));
  EXPECT_THAT(
      call(
          {.args = {points},
           .kwargs = {{"scale", torch::rand({4, 1})}, {"other", 1}}}),
      testing::HasSubstr("there is no argument 'other'"));
  EXPECT_THAT(
      call({.args = {points}, .kwargs = {{"scale", torch::rand({5, 1})}}}),
      testing::HasSubstr("expected 4, as another input has it"));
  const ProgramValue result = net->forward(ProgramArguments{
      .args = {points},
      .kwargs = {{"scale", torch::rand({4, 1})}}});
  EXPECT_EQ(
      result.describe(),
      "{'out': tensor, 'boxes': tensor, 'more': (tensor, 4)}");
  EXPECT_EQ(result["more"][1].integer(), 4);
  EXPECT_THAT(
      error_of([&] { static_cast<void>(result["scores"]); }),
      testing::HasSubstr("keys: out, boxes, more"));
}

TEST(Program, EvalSwitchesEachPart) {
  Program net = test::load_net("cnn");
  const at::Tensor x = torch::rand({4, 3, 16, 16});
  const at::Tensor before =
      state_dict(*net).get("features.1.running_mean").clone();
  net->eval();
  EXPECT_TRUE(at::equal(net->forward(x), net->forward(x)));
  EXPECT_TRUE(
      at::equal(before, state_dict(*net).get("features.1.running_mean")));
  EXPECT_EQ(
      state_dict(*net).get("features.1.num_batches_tracked").item<int>(),
      0);
  net->train();
  EXPECT_FALSE(at::equal(net->forward(x), net->forward(x)));
  EXPECT_EQ(
      state_dict(*net).get("features.1.num_batches_tracked").item<int>(),
      2);
  // One part alone, as in Python.
  net->named_children()["features"]->eval();
  net->forward(x);
  EXPECT_EQ(
      state_dict(*net).get("features.1.num_batches_tracked").item<int>(),
      2);
}

TEST(Program, ClonesShareNothingButTheGraph) {
  Program net = test::load_net("cnn");
  net->named_children()["head"]->eval();
  const auto copy = std::dynamic_pointer_cast<ProgramImpl>(clone_module(*net));
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(&copy->data(), &net->data());
  EXPECT_THAT(test::differences(*copy, state_dict(*net)), testing::IsEmpty());
  EXPECT_FALSE(copy->named_children()["head"]->is_training());
  const at::NoGradGuard no_grad;
  copy->parameters()[0].add_(1);
  EXPECT_EQ(test::differences(*copy, state_dict(*net)).size(), 1U);
}

TEST(Program, ErrorsNameTheLineOfPython) {
  Program net = test::load_net("cnn");
  try {
    net->forward(torch::rand({4, 3, 16, 16}).to(at::kLong));
    FAIL() << "integers are no images";
  } catch (const c10::Error& error) {
    EXPECT_THAT(
        error.what(),
        testing::HasSubstr("node conv2d (torch.ops.aten.conv2d.default)"));
    EXPECT_THAT(error.what(), testing::HasSubstr("program_nets.py"));
  }
}

} // namespace
} // namespace lockstep
