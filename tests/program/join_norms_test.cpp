// SPDX-License-Identifier: BSD-3-Clause
//
// Programs whose batch norms take the addition and the ReLU after them.
#include "lockstep/program/internal/join_norms.h"

#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <torch/types.h>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/kernels/install.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/norm_relu.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/program/program_cases.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::IsEmpty;

thread_local int relus = 0;

// Calls of aten::relu and aten::relu_ in this thread while it lives.
class CountedRelus {
 public:
  CountedRelus()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&count).scopes(
                {at::RecordScope::FUNCTION}))) {
    relus = 0;
  }
  CountedRelus(const CountedRelus&) = delete;
  CountedRelus& operator=(const CountedRelus&) = delete;
  ~CountedRelus() {
    at::removeCallback(handle_);
  }

 private:
  static std::unique_ptr<at::ObserverContext> count(
      const at::RecordFunction& function) {
    const std::string_view name = function.name();
    relus += name == "aten::relu" || name == "aten::relu_" ? 1 : 0;
    return nullptr;
  }

  at::CallbackHandle handle_;
};

// One training step.
struct StepResult {
  at::Tensor output = {};
  /// Of the input and the parameters.
  std::map<std::string, at::Tensor> gradients = {};
  StateDict state = {};
  int relus = 0;
};

class JoinNorms : public testing::Test {
 protected:
  void SetUp() override {
    kernels::install({.batch_norm = true});
  }
  void TearDown() override {
    kernels::uninstall();
  }

  static StepResult step(Program net, const at::Tensor& x, bool are_followed) {
    set_norms_take_epilogues(are_followed);
    StepResult result;
    const at::Tensor input = x.detach().clone().requires_grad_();
    const CountedRelus counted;
    result.output = net->forward(input);
    result.relus = relus;
    if (!result.output.requires_grad()) {
      result.state = state_dict(*net);
      return result;
    }
    result.output.square().mean().backward();
    result.gradients["x"] = input.grad();
    for (const auto& parameter : net->named_parameters()) {
      result.gradients[parameter.key()] = parameter.value().grad();
    }
    result.state = state_dict(*net);
    return result;
  }

  // What differs from `plain` by more than the order of sums explains.
  static std::vector<std::string> far_from(
      const StepResult& plain,
      const StepResult& followed) {
    std::vector<std::string> names;
    const auto compare = [&](const std::string& name,
                             const at::Tensor& expected,
                             const at::Tensor& got) {
      if (expected.defined() != got.defined() ||
          (got.defined() && !at::allclose(got, expected, 1e-4, 1e-6))) {
        names.push_back(name);
      }
    };
    compare("output", plain.output, followed.output);
    for (const auto& [name, gradient] : plain.gradients) {
      compare(name, gradient, followed.gradients.at(name));
    }
    for (const auto& [name, tensor] : plain.state.entries) {
      compare(name, tensor, followed.state.get(name));
    }
    return names;
  }
};

TEST_F(JoinNorms, WhereNothingComesBetween) {
  const test::ScratchDir folder;
  const auto lines = test::python_lines("program_norms.py", {folder.path()});
  ASSERT_GE(lines.size(), 20U);
  for (const std::string& line : lines) {
    const auto cells = split(line, '|');
    const std::string path = folder / (cells[0] + ".pt2");
    torch::manual_seed(1);
    const at::Tensor x = torch::randn({4, 4, 6, 6});
    const at::AutoGradMode mode(cells[2] == "trains");
    const StepResult plain = step(load_program(path), x, false);
    const StepResult followed = step(load_program(path), x, true);
    EXPECT_THAT(far_from(plain, followed), IsEmpty()) << cells[0];
    EXPECT_EQ(std::to_string(followed.relus), cells[1]) << cells[0];
  }
}

TEST_F(JoinNorms, AllOfAResNet) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({4, 3, 32, 32});
  const StepResult plain = step(test::load_net("resnet18"), x, false);
  const StepResult followed = step(test::load_net("resnet18"), x, true);
  EXPECT_EQ(plain.relus, 17);
  EXPECT_EQ(followed.relus, 0);
  EXPECT_THAT(far_from(plain, followed), IsEmpty());
}

TEST_F(JoinNorms, InEvaluationAsWell) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({4, 3, 32, 32});
  Program net = test::load_net("resnet18");
  net->eval();
  set_norms_take_epilogues(false);
  const at::Tensor plain = net->forward(x);
  set_norms_take_epilogues(true);
  const CountedRelus counted;
  EXPECT_TRUE(at::allclose(net->forward(x), plain, 1e-4, 1e-6));
  EXPECT_EQ(relus, 0);
}

} // namespace
} // namespace lockstep
