// SPDX-License-Identifier: BSD-3-Clause
//
// Every scheduler and Python's, to the last bit: the rates and momenta of each
// step, the state, and both ways of going on from the other side's.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/optim/adam.h"
#include "lockstep/optim/sgd.h"
#include "tests/optim/make_schedule.h"
#include "tests/optim/schedule_cases.h"
#include "tests/optim/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using Rows = std::vector<std::vector<double>>;

std::shared_ptr<Optimizer> make_optimizer_of(const ScheduleCase& test_case) {
  std::vector<ParamGroup> groups;
  for (const std::vector<NamedOption>& options : test_case.groups) {
    groups.push_back(
        {.params = {torch::zeros({1}).requires_grad_()}, .options = options});
  }
  if (test_case.optimizer == "Adam") {
    return std::make_shared<Adam>(std::move(groups));
  }
  return std::make_shared<SGD>(std::move(groups));
}

/// One case on our side.
class ScheduleSession {
 public:
  explicit ScheduleSession(const ScheduleCase& test_case)
      : case_(test_case),
        optimizer_(make_optimizer_of(test_case)),
        scheduler_(make_schedule(test_case.schedule, optimizer_)) {
    note();
  }

  void steps(std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      optimizer_->step();
      const auto index = static_cast<std::size_t>(i);
      step_schedule(
          *scheduler_,
          index < case_.arguments.size() ? case_.arguments[index] : Value());
      note();
    }
  }

  [[nodiscard]] const Rows& rows() const {
    return rows_;
  }
  [[nodiscard]] Value state() const {
    return Value::dict(
        {{"optimizer", optimizer_->state_dict()},
         {"scheduler", scheduler_->state_dict()}});
  }
  void load(const Value& state) {
    optimizer_->load_state_dict(*state.find("optimizer"));
    scheduler_->load_state_dict(*state.find("scheduler"));
  }

 private:
  void note() {
    std::vector<double> row = scheduler_->get_last_lr();
    for (const ParamGroup& group : optimizer_->param_groups()) {
      row.push_back(group.lr());
    }
    for (const ParamGroup& group : optimizer_->param_groups()) {
      row.push_back(
          group.find("betas") != nullptr ? group.betas().first
                                         : group.number("momentum"));
    }
    rows_.push_back(std::move(row));
  }

  const ScheduleCase& case_;
  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<Scheduler> scheduler_;
  Rows rows_;
};

/// Runs all cases once: ours to the middle, then Python.
class ScheduleAnswers {
 public:
  static const Value& get() {
    static const Value answers = ask();
    return answers;
  }
  static const Value& of(const ScheduleCase& test_case) {
    return *get().find(test_case.name);
  }

 private:
  static Value ask() {
    const ScratchDir folder;
    ckpt::Dict ours;
    for (const ScheduleCase& test_case : schedule_cases()) {
      ScheduleSession session(test_case);
      session.steps(0, test_case.middle);
      ours.items.emplace_back(test_case.name, session.state());
    }
    ckpt::save(folder / "ours.pth", ours).value();
    ckpt::save(folder / "cases.pth", to_value(schedule_cases())).value();
    ckpt::save(folder / "refused.pth", to_value(refused_cases())).value();
    run_python("optim_schedules.py", {folder.path()});
    return ckpt::load(folder / "answers.pth").value().root;
  }
};

Rows rows_of(const Value& list) {
  Rows rows;
  for (const Value& items : list.as_list()->items) {
    rows.emplace_back();
    for (const Value& item : items.as_list()->items) {
      rows.back().push_back(*item.number());
    }
  }
  return rows;
}

/// Text with SGD's ints as the floats that ours are.
std::string text_of(const Value& state) {
  return repr(*state.find("scheduler"));
}

class Schedules : public testing::TestWithParam<ScheduleCase> {};

std::string name_of_schedule(const testing::TestParamInfo<ScheduleCase>& info) {
  return info.param.name;
}

} // namespace

TEST_P(Schedules, RatesAndStatesArePythons) {
  const Value& python = ScheduleAnswers::of(GetParam());
  ScheduleSession session(GetParam());
  session.steps(0, GetParam().middle);
  EXPECT_EQ(text_of(session.state()), text_of(*python.find("middle")));
  session.steps(GetParam().middle, GetParam().steps);
  EXPECT_EQ(session.rows(), rows_of(*python.find("rows")));
  EXPECT_EQ(text_of(session.state()), text_of(*python.find("end")));
}

TEST_P(Schedules, PythonGoesOnFromOurState) {
  EXPECT_EQ(ScheduleAnswers::of(GetParam()).find("found")->text(), "");
}

TEST_P(Schedules, WeGoOnFromPythonsState) {
  const Value& python = ScheduleAnswers::of(GetParam());
  ScheduleSession session(GetParam());
  session.load(*python.find("middle"));
  EXPECT_EQ(text_of(session.state()), text_of(*python.find("middle")));
  session.steps(GetParam().middle, GetParam().steps);
  Rows expected = rows_of(*python.find("rows"));
  expected.erase(expected.begin(), expected.begin() + GetParam().middle + 1);
  Rows rows = session.rows();
  rows.erase(rows.begin());
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(text_of(session.state()), text_of(*python.find("end")));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    Schedules,
    testing::ValuesIn(schedule_cases()),
    name_of_schedule);

TEST(ScheduleRefusals, BadArgumentsGivePythonsTexts) {
  const Value& texts = *ScheduleAnswers::get().find("refused");
  for (const ScheduleCase& test_case : refused_cases()) {
    const Error error = error_of([&] {
      ScheduleSession session(test_case);
      session.steps(0, test_case.steps);
    });
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << test_case.name;
    EXPECT_EQ(error.message, texts.find(test_case.name)->text())
        << test_case.name;
  }
}

} // namespace lockstep::test
