// SPDX-License-Identifier: BSD-3-Clause
//
// Nets that Python exported are trained here: losses, weights and outputs are
// those of Python's training of the original nets, bit for bit.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <torch/nn/functional/loss.h>

#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "tests/program/program_cases.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

class TrainTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
  }

  // As tests/oracle/program_train.py; gives how many losses are equal.
  static std::int64_t train(
      Program& net,
      OptimizerBase& optimizer,
      const test::ProgramCase& expected) {
    torch::manual_seed(1);
    std::int64_t equal = 0;
    for (std::size_t i = 0; i < expected.batches.size(); ++i) {
      const auto& [arguments, target] = expected.batches[i];
      optimizer.zero_grad();
      const at::Tensor loss = torch::nn::functional::cross_entropy(
          test::output_of(net->forward(arguments)),
          target);
      loss.backward();
      optimizer.step();
      const auto step = static_cast<std::int64_t>(i);
      equal += at::equal(loss, expected.losses[step]) ? 1 : 0;
    }
    return equal;
  }

  static void expect_equal(
      Program& net,
      OptimizerBase& optimizer,
      const test::ProgramCase& expected) {
    EXPECT_EQ(train(net, optimizer, expected), 20);
    EXPECT_THAT(test::differences(*net, expected.state), testing::IsEmpty());
    net->eval();
    const at::NoGradGuard no_grad;
    const at::Tensor outputs =
        test::output_of(net->forward(expected.batches[0].arguments));
    EXPECT_TRUE(at::equal(outputs, expected.eval));
  }
};

TEST_P(TrainTest, SgdHasPythonsBits) {
  Program net = test::load_net(GetParam());
  SGD optimizer(*net, {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  expect_equal(net, optimizer, test::load_case(GetParam(), "sgd"));
}

TEST_P(TrainTest, AdamWHasPythonsBits) {
  Program net = test::load_net(GetParam());
  AdamW optimizer(*net, {.lr = 1e-3, .weight_decay = 0.01});
  expect_equal(net, optimizer, test::load_case(GetParam(), "adamw"));
}

INSTANTIATE_TEST_SUITE_P(
    Nets,
    TrainTest,
    testing::ValuesIn(test::program_nets()),
    [](const auto& net) { return net.param; });

TEST_F(TrainTest, PythonRunsWhatIsGivenBack) {
  const auto& folder = test::program_folder("sgd");
  std::vector<std::string> args{"check", folder.path()};
  std::string expected;
  for (const std::string& name : test::program_nets()) {
    Program net = test::load_net(name);
    SGD optimizer(*net, {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
    train(net, optimizer, test::load_case(name, "sgd"));
    save_program(net, folder / (name + ".trained.pt2"));
    args.push_back(name);
    expected += name + " True\n";
  }
  EXPECT_EQ(test::run_python("program_train.py", args), expected);
}

} // namespace
} // namespace lockstep
