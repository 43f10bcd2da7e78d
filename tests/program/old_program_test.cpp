// SPDX-License-Identifier: BSD-3-Clause
//
// A program that torch 2.6 wrote (tests/oracle/make_programs.py).
#include <bit>
#include <filesystem>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/program/program.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

constexpr const char* kOld = "testdata/programs/torch26.pt2";

TEST(OldProgram, TrainsWithPythonsBits) {
  at::set_num_threads(1);
  Program net = load_program(kOld);
  SGD optimizer(*net, {.lr = 0.1, .momentum = 0.9});
  torch::manual_seed(1);
  std::vector<std::string> losses;
  for (std::int64_t step = 0; step < 5; ++step) {
    const at::Tensor x =
        torch::remainder(torch::arange(15 + 5 * step) * 7, 9).view({-1, 5});
    const at::Tensor loss =
        torch::nn::functional::cross_entropy(net->forward(x), x.select(1, 0));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    losses.push_back(
        format("{:08x}", std::bit_cast<std::uint32_t>(loss.item<float>())));
  }
  EXPECT_EQ(losses, test::python_lines("program_old.py"));
}

TEST(OldProgram, SwitchesToEvaluation) {
  Program net = load_program(kOld);
  net->eval();
  const at::Tensor x = torch::ones({2, 5}, at::kLong);
  EXPECT_TRUE(at::equal(net->forward(x), net->forward(x)));
}

// Torch 2.6 writes tied parameters under the name of the last.
TEST(OldProgram, HasPythonsParameters) {
  const Program net = load_program(kOld);
  EXPECT_THAT(
      net->named_parameters().keys(),
      testing::UnorderedElementsAre("last.weight", "norm.weight", "norm.bias"));
  const auto buffers = net->named_buffers();
  EXPECT_FALSE(
      buffers["norm.running_mean"].is_same(buffers["norm.running_var"]));
}

TEST(OldProgram, IsNotWrittenInItsOldForm) {
  const test::ScratchDir folder;
  const Program net = load_program(kOld);
  try {
    save_program(*net, folder / "new.pt2");
    FAIL() << "written";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().detail, "E_PROGRAM");
    EXPECT_THAT(error.what(), testing::HasSubstr("lies in one pickle"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "new.pt2"));
}

} // namespace
} // namespace lockstep
