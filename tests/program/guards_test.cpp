// SPDX-License-Identifier: BSD-3-Clause
//
// Conditions between sizes, compared with Python's.
#include "lockstep/program/internal/guards.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <torch/types.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/guard_expression.h"
#include "lockstep/program/program.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using program::GuardExpression;
using program::GuardSource;
using testing::IsEmpty;

// "9x4"
at::Tensor ones(const std::string& shape) {
  std::vector<std::int64_t> sizes;
  for (const std::string& size : split(shape, 'x')) {
    sizes.push_back(parse_number<std::int64_t>(size).value());
  }
  return torch::ones(sizes);
}

ProgramArguments
arguments_of(const std::string& net, const at::Tensor& x, const at::Tensor& y) {
  if (net == "groups") {
    return {.args = {x, ProgramValue::dict({{"y", y}})}};
  }
  return net == "halves" ? ProgramArguments{.args = {x}, .kwargs = {{"y", y}}}
                         : ProgramArguments{.args = {x, y}};
}

/// Nets that Python exported, and what it made of inputs of other sizes.
class Guards : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<test::ScratchDir>();
    verdicts = test::python_lines("program_guards.py", {folder->path()});
  }
  static void TearDownTestSuite() {
    folder.reset();
  }
  static Program load(const std::string& net, bool check_guards = true) {
    return load_program(
        *folder / (net + ".pt2"),
        {.check_guards = check_guards});
  }

  inline static std::unique_ptr<test::ScratchDir> folder = {};
  inline static std::vector<std::string> verdicts = {};
};

TEST_F(Guards, RefuseWhatPythonRefuses) {
  std::map<std::string, Program> nets;
  std::map<std::string, std::set<std::string>> found;
  for (const std::string& line : verdicts) {
    const auto cells = split(line, '|');
    const auto [place, is_new] = nets.try_emplace(cells[0], nullptr);
    Program& net = place->second;
    if (is_new) {
      net = load(cells[0]);
    }
    std::string verdict = "runs";
    try {
      net->forward(arguments_of(cells[0], ones(cells[1]), ones(cells[2])));
    } catch (const Exception& error) {
      EXPECT_EQ(error.error().detail, "E_PROGRAM_INPUT");
      verdict = "refuses";
    }
    EXPECT_EQ(verdict, cells[3]) << line;
    found[cells[0]].insert(verdict);
  }
  EXPECT_EQ(found.size(), 4U);
  for (const auto& [net, kinds] : found) {
    EXPECT_EQ(kinds.size(), 2U) << net << " runs, and refuses";
  }
}

TEST_F(Guards, NameTheConditionAndTheSizes) {
  Program net = load("area");
  try {
    net->forward(
        ProgramArguments{.args = {torch::ones({6, 8}), torch::ones({3})}});
    ADD_FAILURE() << "no error";
  } catch (const Exception& error) {
    EXPECT_EQ(
        error.error().message,
        "the program is right for inputs with L['x'].size()[1]*L['x'].size()[0]"
        " <= 40 only; x.size()[1] is 8, x.size()[0] is 6");
  }
}

TEST_F(Guards, AreSwitchedOffByTheProgram) {
  Program net = load("area", /*check_guards=*/false);
  const ProgramArguments large{.args = {torch::ones({6, 8}), torch::ones({3})}};
  EXPECT_EQ(net->forward(large).tensor().sum().item<float>(), 6 * 8 * 4);
}

TEST(InputGuards, FindInputsByWhatGuardsCallThem) {
  const std::vector<std::string> names{
      "x",
      "args_0",
      "y",
      "d['it\'s']",
      "d['3']['k']"};
  const std::vector<std::string> known{
      "L['x'].size()[0] == 3",
      "L['args'][0].size()[0] == 3",
      "L['kwargs']['y'].size()[0] == 3",
      "L['d'][\"it's\"].size()[0] == 3",
      "L['d'][3]['k'].size()[0] == 3",
      "L['flat_args'][2].size()[0] == 3"};
  EXPECT_THAT(program::InputGuards(known, names).unread(), IsEmpty());
  const std::vector<std::string> unknown{
      "L['z'].size()[0] == 3",
      "L['x'].field.size()[0] == 3",
      "(1 if L['x'].size()[0] == 3 else 2) == 1"};
  EXPECT_EQ(program::InputGuards(unknown, names).unread(), unknown);
}

TEST_F(Guards, AnUndefinedTensorIsToldApart) {
  Program net = load("area");
  try {
    net->forward(ProgramArguments{.args = {at::Tensor(), torch::ones({3})}});
    ADD_FAILURE() << "no error";
  } catch (const Exception& error) {
    EXPECT_EQ(
        error.error().message,
        "input 'x': expected a tensor, got an undefined tensor");
  }
}

TEST(GuardExpression, IsPythons) {
  const std::string size = "L['x'].size()[";
  const std::vector<std::string> texts{
      "1 + 2*3 - 4",
      "-7 // 2",
      "-7 % 3",
      "7 % -3",
      "7.5 // -2",
      "2**3**2",
      "-2**2",
      "2**-1",
      "7/2",
      "(1 + 2)*3",
      "max(1, 5, 3) - min(4, 2)",
      "torch.sym_max(1, torch.sym_min(7, 3)) < torch.sym_min(9, 2)",
      "round(2.5) + round(3.5) - round(-0.5)",
      "abs(-3) + math.floor(-2.5) + math.ceil(2.1) + math.trunc(-2.7)",
      "math.sqrt(2) + torch._sym_sqrt(9) + torch.sym_float(3)/2",
      "1 < 2 and not 2 < 1",
      "1 > 2 or 3 != 4 and 2 <= 2",
      "not 1 == 1 or 5 >= 6",
      "math.inf > 1e30",
      "True == 1",
      size + "0]*" + size + "1] % 4 == 2",
      "(" + size + "0] // 4) + L['x'].stride()[0]",
      "L['x'].storage_offset() + " + size + "2]"};
  std::vector<std::string> args{"-"};
  args.insert(args.end(), texts.begin(), texts.end());
  const auto expected = test::python_lines("program_guards.py", args);
  ASSERT_EQ(expected.size(), texts.size());
  const std::vector<double> sizes{6, 9, 1};
  const std::vector<double> strides{9, 1, 1};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto expression = GuardExpression::parse(texts[i]);
    ASSERT_TRUE(expression) << texts[i];
    std::vector<double> values;
    for (const GuardSource& source : expression->sources()) {
      EXPECT_EQ(source.path, "x");
      values.push_back(
          source.kind == program::GuardNumber::kSize ? sizes[source.dimension]
          : source.kind == program::GuardNumber::kStride
              ? strides[source.dimension]
              : 0.0);
    }
    EXPECT_EQ(expression->evaluate(values), parse_number<double>(expected[i]))
        << texts[i];
  }
}

TEST(GuardExpression, OtherTextsAreNone) {
  const std::string deep(100'000, '(');
  for (const std::string& text :
       {std::string(),
        std::string("1 +"),
        std::string("1 < 2 < 3"),
        std::string("(1"),
        std::string("1)"),
        std::string("L"),
        std::string("L['x'"),
        std::string("L['x\"]"),
        std::string("L['x].size()[0]"),
        std::string("L[0].size()[0]"),
        std::string("L['x'].size()"),
        std::string("L['x'].size()[-1]"),
        std::string("L['x'].size()[99999999999999999999]"),
        std::string("L['x'].data_ptr() == 0"),
        std::string("os.system('x')"),
        std::string("max()"),
        std::string("1 and"),
        deep,
        std::string(100'000, '-') + "1"}) {
    EXPECT_FALSE(GuardExpression::parse(text)) << text.substr(0, 40);
  }
}

TEST(GuardExpression, IsNoNumberWherePythonRaises) {
  for (const char* text :
       {"1 // 0 == 0",
        "1 % 0 != 0",
        "1 / 0 >= 0",
        "not 1 % 0 == 0",
        "max(1, 5 // 0) >= 1",
        "1 // 0 == 0 or 1 == 1",
        "1 == 1 and 1 // 0 == 0"}) {
    EXPECT_TRUE(std::isnan(GuardExpression::parse(text)->evaluate({}))) << text;
  }
  for (const char* text :
       {"1 == 1 or 1 // 0 == 0", "not (1 == 2 and 1 // 0)"}) {
    EXPECT_EQ(GuardExpression::parse(text)->evaluate({}), 1.0) << text;
  }
}

TEST(GuardExpression, KnowsThoseOfSmallSizes) {
  for (const char* text :
       {"L['x'].size()[0] != 1",
        "L['x'].size()[0] >= 2",
        "L['x'].size()[0] > 0"}) {
    EXPECT_TRUE(GuardExpression::parse(text)->is_of_small_sizes()) << text;
  }
  for (const char* text :
       {"L['x'].size()[0] != 2",
        "L['x'].size()[0] >= 3",
        "L['x'].size()[0] // 3 != 1",
        "L['x'].stride()[0] != 1",
        "L['k'] > 1",
        "L['x'].size()[0] <= 1"}) {
    EXPECT_FALSE(GuardExpression::parse(text)->is_of_small_sizes()) << text;
  }
}

} // namespace
} // namespace lockstep
