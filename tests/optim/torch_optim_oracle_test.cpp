// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's optimizers and Python's, both ways: what one side saves after
// three steps, the other side loads and goes on with. The state is the same to
// the last bit; what the next steps make of it is, too, except where LibTorch
// rounds otherwise than Python (`has_pythons_bits`).
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/support.h"
#include "tests/optim/torch_cases.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

namespace {

using ckpt::Value;

/// Runs all cases once: ours to step 3, then Python.
class TorchAnswers {
 public:
  static TorchAnswers& get() {
    static TorchAnswers answers;
    return answers;
  }

  std::string verdict(const TorchCase& test_case) {
    return verdicts_[test_case.name];
  }
  [[nodiscard]] Value load(const TorchCase& test_case, std::string_view suffix)
      const {
    return ckpt::load(path_of(test_case, suffix)).value().root;
  }

 private:
  TorchAnswers() {
    at::set_num_threads(2);
    for (const TorchCase& test_case : torch_cases()) {
      TorchSession session = TorchSession::start(test_case);
      session.steps(0, 3);
      ckpt::save(path_of(test_case, ".cpp3.pth"), session.snapshot()).value();
    }
    std::istringstream lines(run_python("optim_torch.py", {folder_.path()}));
    for (std::string name, verdict; lines >> name >> std::ws;) {
      std::getline(lines, verdict);
      verdicts_[name] = verdict;
    }
  }

  [[nodiscard]] std::string path_of(
      const TorchCase& test_case,
      std::string_view suffix) const {
    return folder_ / (test_case.name + std::string(suffix));
  }

  ScratchDir folder_;
  std::map<std::string, std::string> verdicts_;
};

/// What a straight run of six steps ends with.
std::string straight_run(const TorchCase& test_case, at::Device device) {
  TorchSession session = TorchSession::start(test_case, device);
  session.steps(0, 6);
  return repr(session.snapshot());
}

/// The same with a file after the third step.
std::string interrupted_run(const TorchCase& test_case, at::Device device) {
  const ScratchDir folder;
  TorchSession first = TorchSession::start(test_case, device);
  first.steps(0, 3);
  ckpt::save(folder / "state.pth", first.snapshot()).value();
  TorchSession second = TorchSession::start(test_case, device);
  second.load(ckpt::load(folder / "state.pth").value().root);
  for (const at::Tensor& param : second.params) {
    EXPECT_EQ(param.device(), device);
  }
  second.steps(3, 6);
  return repr(second.snapshot());
}

class TorchOracle : public testing::TestWithParam<TorchCase> {};

std::string name_of_case(const testing::TestParamInfo<TorchCase>& info) {
  return info.param.name;
}

} // namespace

TEST_P(TorchOracle, PythonContinuesOurFile) {
  std::vector<std::string> good = {"same bits"};
  if (!GetParam().has_pythons_bits) {
    good.emplace_back("within 1e-6");
  }
  EXPECT_THAT(
      TorchAnswers::get().verdict(GetParam()),
      testing::AnyOfArray(good));
}

TEST_P(TorchOracle, WeContinuePythonsFile) {
  const Value saved = TorchAnswers::get().load(GetParam(), ".py3.pth");
  TorchSession session = TorchSession::start(GetParam());
  session.load(saved);
  EXPECT_EQ(
      repr(*(*session.snapshot().find("optimizer")).find("state")),
      repr(*saved.find("optimizer")->find("state")))
      << "loading loses something";
  session.steps(3, 6);
  const Value straight = TorchAnswers::get().load(GetParam(), ".py6.pth");
  const Value ours = session.snapshot();
  if (GetParam().has_pythons_bits) {
    EXPECT_EQ(repr(*ours.find("weights")), repr(*straight.find("weights")));
  }
  for (std::size_t i = 0; i < session.params.size(); ++i) {
    const Value& weight = straight.find("weights")->as_list()->items[i];
    EXPECT_TRUE(session.params[i].detach().allclose(
        to_tensor(*weight.as_tensor()),
        1e-6,
        1e-6))
        << i;
  }
}

TEST_P(TorchOracle, ARoundTripChangesNoBit) {
  EXPECT_EQ(
      interrupted_run(GetParam(), at::kCPU),
      straight_run(GetParam(), at::kCPU));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    TorchOracle,
    testing::ValuesIn(torch_cases()),
    name_of_case);

// A process of its own: devices must come before the first backward pass.
TEST(TorchOptimSim, ARoundTripChangesNoBit) {
  start_sim({.devices = 2});
  const at::Device device("sim:1");
  for (const TorchCase& test_case : torch_cases()) {
    EXPECT_EQ(
        interrupted_run(test_case, device),
        straight_run(test_case, device))
        << test_case.name;
  }
}

} // namespace lockstep::test
