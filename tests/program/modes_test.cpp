// SPDX-License-Identifier: BSD-3-Clause
//
// What a program must keep apart: modes of its parts, values that share memory,
// arguments by position and by name.
#include <iomanip>
#include <map>
#include <memory>
#include <sstream>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Takes LibTorch's warnings while it lives.
class Warnings : public c10::WarningHandler {
 public:
  Warnings() : old_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
  }
  ~Warnings() override {
    c10::WarningUtils::set_warning_handler(old_);
  }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  void process(const c10::Warning& warning) override {
    text += warning.msg() + "\n";
  }
  std::string text = {};

 private:
  c10::WarningHandler* old_;
};

template <class Call>
std::string problem_of_call(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

class Modes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::ScratchDir>();
    lines = test::python_lines("program_modes.py", {folder->path()});
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  static std::string path(const std::string& net) {
    return *folder / (net + ".pt2");
  }

  static std::unique_ptr<test::ScratchDir> folder;
  static std::vector<std::string> lines;
};

std::unique_ptr<test::ScratchDir> Modes::folder;
std::vector<std::string> Modes::lines;

TEST_F(Modes, ABufferInAParametersMemoryHasNoGradient) {
  Program net = load_program(path("shared"));
  ASSERT_FALSE(lines.empty());
  for (const Program& each :
       {net,
        Program(std::dynamic_pointer_cast<ProgramImpl>(clone_module(*net)))}) {
    Program one = each;
    const auto named = one->named_parameters();
    EXPECT_FALSE(one->named_buffers()["ref"].requires_grad());
    EXPECT_TRUE(named["w"].requires_grad());
    one->forward(torch::ones({4, 3})).sum().backward();
    std::ostringstream text;
    text << "shared " << std::fixed << std::setprecision(1)
         << named["w"].grad().sum().item<double>();
    EXPECT_THAT(lines, testing::Contains(text.str()));
    // The memory is one, in a clone as well.
    const at::NoGradGuard no_grad;
    named["w"].fill_(5);
    EXPECT_EQ(one->named_buffers()["ref"].sum().item<double>(), 15);
  }
}

TEST_F(Modes, AConstantMayHaveTheNameOfABuffer) {
  Program net = load_program(path("named"));
  EXPECT_EQ(net->forward(torch::zeros({4})).sum().item<double>(), 14);
  const at::NoGradGuard no_grad;
  net->named_buffers()["lifted_tensor_0"].fill_(2);
  save_program(*net, *folder / "named_saved.pt2");
  Program again = load_program(*folder / "named_saved.pt2");
  EXPECT_EQ(again->forward(torch::zeros({4})).sum().item<double>(), 18);
}

TEST_F(Modes, WeightsThatShareMemoryAreSavedOrRefused) {
  Program net = load_program(path("overlapping"));
  const at::NoGradGuard no_grad;
  const auto copy = std::dynamic_pointer_cast<ProgramImpl>(clone_module(*net));
  copy->named_parameters()["a"].add_(1);
  save_program(*copy, *folder / "saved.pt2");
  Program again = load_program(*folder / "saved.pt2");
  EXPECT_EQ(again->named_parameters()["a"].sum().item<double>(), 12);
  EXPECT_EQ(again->named_parameters()["b"].sum().item<double>(), 6);
  // A program of the user may part them.
  copy->named_parameters()["b"].set_data(torch::zeros(3));
  EXPECT_THAT(
      problem_of_call([&] { save_program(*copy, *folder / "no.pt2"); }),
      testing::AllOf(
          HasSubstr("whose memory it shares in the file"),
          HasSubstr("save the weights alone")));
}

TEST_F(Modes, ElementsThatAreOneInTheFileAreSavedIfTheyAreEqual) {
  Program net = load_program(path("expanded"));
  const at::NoGradGuard no_grad;
  net->named_buffers()["scale"].set_data(torch::full({4}, 3.0));
  save_program(*net, *folder / "expanded_saved.pt2");
  Program again = load_program(*folder / "expanded_saved.pt2");
  EXPECT_EQ(again->named_buffers()["scale"].sum().item<double>(), 12);
  net->named_buffers()["scale"].set_data(torch::arange(4.0));
  EXPECT_THAT(
      problem_of_call([&] { save_program(*net, *folder / "no.pt2"); }),
      HasSubstr("equal elements, which share memory"));
}

TEST_F(Modes, KeywordsOfAnExportHaveNoPositions) {
  Program net = load_program(path("keywords"));
  const at::Tensor x = torch::zeros({4, 3});
  const at::Tensor one = torch::ones({4, 3});
  const auto call = [&](const ProgramArguments& arguments) {
    return problem_of_call([&] { net->forward(arguments); });
  };
  const ProgramValue result = net->forward(
      ProgramArguments{.args = {x}, .kwargs = {{"a", one}, {"b", x}}});
  EXPECT_EQ(result.tensor().sum().item<double>(), 24);
  EXPECT_THAT(call({.args = {x, one, x}}), HasSubstr("too many"));
  EXPECT_THAT(call({.args = {x, one, x}}), HasSubstr("the last 2 by name"));
  EXPECT_THAT(
      call({.args = {x, one}, .kwargs = {{"a", x}}}),
      HasSubstr("too many"));
  EXPECT_THAT(
      call({.args = {x}, .kwargs = {{"x", x}, {"a", x}, {"b", x}}}),
      HasSubstr("argument 'x' is given twice"));
  EXPECT_THAT(
      call({.args = {x}, .kwargs = {{"a", x}}}),
      HasSubstr("argument 'b' is missing"));
}

TEST_F(Modes, OneKeywordHasNoPositionButAlone) {
  Program scaled = load_program(path("scaled"));
  const at::Tensor x = torch::ones({4, 3});
  EXPECT_THAT(
      problem_of_call([&] {
        scaled->forward(ProgramArguments{.args = {x, x}});
      }),
      HasSubstr("the last one by name"));
  const ProgramValue result = scaled->forward(
      ProgramArguments{.args = {x}, .kwargs = {{"scale", x + 1}}});
  EXPECT_EQ(result.tensor().sum().item<double>(), 24);
  EXPECT_EQ(load_program(path("only"))->forward(x).sum().item<double>(), 12);
}

// LibTorch's kernels take these on trust.
TEST_F(Modes, ArgumentsThatDoNotFitAreErrors) {
  Program attends = load_program(path("attends"));
  const at::Tensor q = torch::ones({2, 2, 1, 4});
  const auto keys = [](std::int64_t length) {
    return torch::ones({2, 2, length, 4});
  };
  EXPECT_EQ(attends->forward(q, keys(3), keys(3)).sizes(), q.sizes());
  EXPECT_THAT(
      problem_of_call([&] { attends->forward(q, keys(3), keys(1 << 22)); }),
      HasSubstr("attention takes as many values as keys"));
  for (const char* net : {"bags", "bags_decomposed"}) {
    Program bags = load_program(path(net));
    const at::Tensor words = torch::arange(6);
    const auto sum_of = [&](std::int64_t second) {
      return bags->forward(words, torch::tensor({0L, second, 3L})).sum();
    };
    EXPECT_NEAR(
        sum_of(2).item<double>(),
        std::stod(lines.back().substr(std::string("bags float32 ").size())),
        1e-6)
        << net;
    EXPECT_THAT(
        problem_of_call(
            [&] { bags->forward(words, torch::zeros({0}, at::kLong)); }),
        HasSubstr("bags without offsets take no indices"));
    for (const std::int64_t bad : {-50'000'000L, 7L, 4L}) {
      EXPECT_THAT(
          problem_of_call([&] { sum_of(bad); }),
          HasSubstr("offsets of bags ascend"))
          << net << bad;
    }
  }
}

TEST_F(Modes, ANumberIsANumber) {
  Program net = load_program(path("number"));
  const auto call = [&](const ProgramValue& n) {
    return problem_of_call([&] {
      net->forward(ProgramArguments{.args = {torch::ones({4, 3}), n}});
    });
  };
  EXPECT_EQ(call(5), "none");
  EXPECT_THAT(call("five"), HasSubstr("input 'n': expected a whole number"));
  EXPECT_THAT(call(2.5), HasSubstr("expected a whole number, got 2.5"));
  EXPECT_THAT(call(ProgramValue()), HasSubstr("expected a whole number"));
}

TEST_F(Modes, PythonsSignsAreOperatorsOfExports) {
  Program net = load_program(path("signs"));
  const at::Tensor result = net->forward(torch::arange(9.0));
  EXPECT_TRUE(
      at::equal(result, torch::tensor({0, 2, 4, 6, 0, 0, 0, 14, 0}, at::kLong)))
      << result;
}

TEST_F(Modes, SaysWhatIsDoneInEvalAsInTraining) {
  Warnings warnings;
  Program net = load_program(path("smoothed"));
  EXPECT_THAT(warnings.text, HasSubstr("draws random numbers in 1 nodes"));
  EXPECT_THAT(warnings.text, HasSubstr("bernoulli_"));
  EXPECT_THAT(warnings.text, HasSubstr("changes 1 of its tensors"));
  EXPECT_THAT(warnings.text, HasSubstr("'mean'"));
  warnings.text.clear();
  for (const char* quiet : {"shared", "norm_in_eval", "expanded", "copied"}) {
    load_program(path(quiet));
    EXPECT_EQ(warnings.text, "") << quiet;
  }
}

TEST_F(Modes, SaysWhichBuffersAreChangedInPartAndWithin) {
  for (const auto& [net, buffer] : std::map<std::string, std::string>{
           {"clamped", "'fc.weight'"},
           {"queue", "'queue'"},
           {"queue_decomposed", "'queue'"},
           {"kept", "'last'"},
           {"averaged", "'mean'"}}) {
    Warnings warnings;
    Program program = load_program(path(net));
    EXPECT_THAT(warnings.text, HasSubstr("changes 1 of its tensors")) << net;
    EXPECT_THAT(warnings.text, HasSubstr(buffer)) << net;
  }
}

TEST_F(Modes, AFrozenNormIsNoExportInEval) {
  Warnings warnings;
  Program net = load_program(path("averaged"));
  net->train();
  EXPECT_THAT(warnings.text, HasSubstr("none of the 1 training flags"));
  EXPECT_THAT(warnings.text, HasSubstr("or with all of them frozen"));
}

TEST_F(Modes, AutocastOfAnotherDeviceIsItsOwn) {
  Program net = load_program(path("casts"));
  const at::Tensor result = net->forward(torch::ones({4, 3}));
  EXPECT_EQ(result.scalar_type(), at::kBFloat16);
  std::ostringstream text;
  text << std::setprecision(17) << "casts bfloat16 "
       << result.sum().item<double>();
  EXPECT_THAT(lines, testing::Contains(text.str()));
}

TEST_F(Modes, ADataclassHasItsNames) {
  Program net = load_program(path("finds"));
  const ProgramValue result =
      net->forward(ProgramArguments{.args = {torch::ones({4, 3})}});
  EXPECT_EQ(result["logits"].tensor().sum().item<double>(), 24);
  EXPECT_EQ(result["hidden"].tensor().sum().item<double>(), 36);
  EXPECT_TRUE(result["loss"].is_none());
  const auto pair = ProgramValue::tuple({1, 2});
  EXPECT_THAT(
      problem_of_call([&] { static_cast<void>(pair["logits"]); }),
      HasSubstr("expected a dict, got (1, 2)"));
}

TEST_F(Modes, ADecomposedGraphRunsAndIsToldOf) {
  Warnings warnings;
  Program net = load_program(path("inverse"));
  EXPECT_THAT(warnings.text, HasSubstr("drops detach() and no_grad()"));
  const at::Tensor x = torch::ones({4, 3});
  const ProgramValue result = net->forward(ProgramArguments{.args = {x}});
  const auto weights = net->named_parameters();
  const at::Tensor a =
      torch::linear(x, weights["fc.weight"], weights["fc.bias"])
          .view({-1, 4, 4});
  EXPECT_TRUE(at::equal(
      result[0].tensor(),
      at::linalg_inv(a.matmul(a.mT()) + 2 * torch::eye(4))));
  EXPECT_EQ(result[1].container(), "builtins.dict");
  EXPECT_EQ(result[1].describe(), "{}");
}

// An optimizer of LibTorch would step twice.
TEST_F(Modes, TiedWeightsAreOneParameter) {
  Program net = load_program(path("tied"));
  EXPECT_EQ(net->parameters().size(), 1U);
  EXPECT_EQ(net->named_parameters().size(), 2U);
  const at::Tensor before = net->parameters()[0].detach().clone();
  torch::optim::SGD sgd(net->parameters(), 0.5);
  net->forward(torch::arange(4)).sum().backward(); // of {"out": tensor}
  sgd.step();
  EXPECT_TRUE(at::equal(
      net->parameters()[0],
      before.sub(net->parameters()[0].grad(), 0.5)));
}

TEST_F(Modes, SizesAreShifted) {
  Program net = load_program(path("pads"));
  EXPECT_EQ(
      net->forward(torch::ones({7, 3})).sizes(),
      at::IntArrayRef({3, 12}));
}

TEST_F(Modes, ADecomposedDropoutCannotBeSwitched) {
  Program net = load_program(path("dropout2d"));
  EXPECT_THAT(
      problem_of_call([&] { net->eval(); }),
      HasSubstr("trains and cannot be switched"));
}

TEST_F(Modes, ANormOfAnExportInEvalStaysInEval) {
  Warnings warnings;
  Program net = load_program(path("norm_in_eval"));
  EXPECT_FALSE(net->is_training());
  net->eval();
  EXPECT_EQ(warnings.text, "");
  net->train();
  net->eval();
  net->train();
  const std::string once = "it was exported in eval mode";
  EXPECT_THAT(warnings.text, HasSubstr(once));
  warnings.text.erase(0, warnings.text.find(once) + once.size());
  EXPECT_THAT(warnings.text, Not(HasSubstr(once)));
}

TEST_F(Modes, ANormCountsBatchesInItsOwnMode) {
  Program net = load_program(path("norm"));
  const auto count = [&] {
    return state_dict(*net).get("1.num_batches_tracked").item<int>();
  };
  const at::Tensor x = torch::rand({4, 3, 4, 4});
  net->forward(x);
  EXPECT_EQ(count(), 1);
  net->named_children()["1"]->eval();
  net->forward(x);
  EXPECT_EQ(count(), 1);
  net->eval();
  net->named_children()["1"]->train();
  net->forward(x);
  EXPECT_EQ(count(), 2);
}

TEST_F(Modes, OtherTypesAreForNumbersThatAreNotWhole) {
  Program net = load_program(path("norm"));
  const StateDict before = state_dict(*net);
  net->to(at::kDouble);
  EXPECT_EQ(state_dict(*net).get("0.weight").scalar_type(), at::kDouble);
  EXPECT_EQ(
      state_dict(*net).get("1.num_batches_tracked").scalar_type(),
      at::kLong);
  net->to(at::kFloat);
  save_program(*net, *folder / "converted.pt2");
}

} // namespace
} // namespace lockstep
