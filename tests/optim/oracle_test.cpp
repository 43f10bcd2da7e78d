// SPDX-License-Identifier: BSD-3-Clause
//
// Both ways, to the last bit: what one side saves after five steps, the other
// side loads and continues as the first would have.
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/optim/oracle_cases.h"
#include "tests/optim/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

namespace {

using ckpt::Value;

/// One case on our side.
struct Session {
  std::vector<at::Tensor> params = {};
  std::unique_ptr<Optimizer> optimizer = {};
  std::shared_ptr<Scheduler> scheduler = {};

  static Session start(const OracleCase& test_case) {
    Session session = {.params = make_params()};
    session.optimizer = make_case_optimizer(test_case, session.params);
    session.scheduler = make_case_scheduler(test_case, *session.optimizer);
    return session;
  }

  void steps(int first, int last) {
    for (int step = first; step < last; ++step) {
      // Python's fused SGD cannot start a momentum buffer late, as the fifth
      // parameter does in step 0.
      const bool is_fused = optimizer->param_groups()[0].flag("fused");
      set_grads(params, is_fused ? step + 1 : step);
      optimizer->step();
      if (scheduler) {
        scheduler->step();
      }
    }
  }

  [[nodiscard]] Value snapshot() const {
    ckpt::List weights;
    ValueBuilder builder;
    for (const at::Tensor& param : params) {
      weights.items.push_back(builder.tensor(param.detach()));
    }
    return Value::dict(
        {{"weights", std::move(weights)},
         {"optimizer", optimizer->state_dict()},
         {"scheduler", scheduler ? scheduler->state_dict() : Value()}});
  }

  void load(const Value& saved) {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const Value& weight = saved.find("weights")->as_list()->items[i];
      params[i].copy_(to_tensor(*weight.as_tensor()));
    }
    optimizer->load_state_dict(*saved.find("optimizer"));
    if (scheduler) {
      scheduler->load_state_dict(*saved.find("scheduler"));
    }
  }
};

/// Runs all cases once: ours to step 5, then Python.
class Answers {
 public:
  static Answers& get() {
    static Answers answers;
    return answers;
  }

  /// " ok", or what Python found.
  std::string verdict(const OracleCase& test_case) {
    return verdicts_[test_case.name];
  }
  [[nodiscard]] Value load(const OracleCase& test_case, std::string_view suffix)
      const {
    return ckpt::load(path_of(test_case, suffix)).value().root;
  }

 private:
  Answers() {
    at::set_num_threads(2);
    ckpt::save(folder_ / "cases.pth", cases_value(oracle_cases())).value();
    for (const OracleCase& test_case : oracle_cases()) {
      Session session = Session::start(test_case);
      session.steps(0, 5);
      ckpt::save(path_of(test_case, ".cpp5.pth"), session.snapshot()).value();
    }
    std::istringstream lines(run_python("optim_steps.py", {folder_.path()}));
    for (std::string name, verdict; lines >> name;) {
      std::getline(lines, verdict);
      verdicts_[name] = verdict;
    }
  }

  [[nodiscard]] std::string path_of(
      const OracleCase& test_case,
      std::string_view suffix) const {
    return folder_ / (test_case.name + std::string(suffix));
  }

  ScratchDir folder_;
  std::map<std::string, std::string> verdicts_;
};

class Oracle : public testing::TestWithParam<OracleCase> {};
class ScheduleOracle : public testing::TestWithParam<OracleCase> {};

std::vector<OracleCase> scheduled_cases() {
  std::vector<OracleCase> cases = oracle_cases();
  std::erase_if(cases, [](const auto& c) { return c.scheduler.empty(); });
  return cases;
}

std::string name_of(const testing::TestParamInfo<OracleCase>& info) {
  return info.param.name;
}

} // namespace

TEST_P(Oracle, PythonContinuesOurFile) {
  EXPECT_EQ(Answers::get().verdict(GetParam()), " ok");
}

TEST_P(Oracle, WeContinuePythonsFile) {
  const Value saved = Answers::get().load(GetParam(), ".py5.pth");
  Session session = Session::start(GetParam());
  session.load(saved);
  EXPECT_EQ(repr(session.snapshot()), repr(saved)) << "loading loses something";
  session.steps(5, 10);
  EXPECT_EQ(
      repr(session.snapshot()),
      repr(Answers::get().load(GetParam(), ".py10.pth")));
}

TEST_P(ScheduleOracle, LearningRatesEqualPythonsForTwoHundredSteps) {
  const Value rates = Answers::get().load(GetParam(), ".rates.pth");
  const Session session = Session::start(GetParam());
  for (const Value& row : rates.as_list()->items) {
    ckpt::List ours;
    for (const double lr : session.scheduler->get_last_lr()) {
      ours.items.emplace_back(lr);
    }
    for (const ParamGroup& group : session.optimizer->param_groups()) {
      const bool is_adam = group.find("betas") != nullptr;
      ours.items.emplace_back(
          is_adam ? group.betas().first : group.number("momentum"));
    }
    // The second group of SGD keeps momentum 0, an int in Python.
    ckpt::List theirs;
    for (const Value& item : row.as_list()->items) {
      theirs.items.emplace_back(item.number().value());
    }
    ASSERT_EQ(repr(ours), repr(theirs)) << session.scheduler->last_epoch();
    if (&row != &rates.as_list()->items.back()) {
      session.scheduler->step();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Oracle,
    testing::ValuesIn(oracle_cases()),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Cases,
    ScheduleOracle,
    testing::ValuesIn(scheduled_cases()),
    name_of);

} // namespace lockstep::test
