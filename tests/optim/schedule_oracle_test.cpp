// SPDX-License-Identifier: BSD-3-Clause
//
// Every scheduler and Python's, to the last bit: the rates and momenta of each
// step, the state, and both ways of going on from the other side's.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/torch_optimizer.h"
#include "tests/optim/make_schedule.h"
#include "tests/optim/schedule_cases.h"
#include "tests/optim/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using Rows = std::vector<std::vector<double>>;

std::vector<ParamGroup> groups_of(const ScheduleCase& test_case) {
  std::vector<ParamGroup> groups;
  for (const std::vector<NamedOption>& options : test_case.groups) {
    groups.push_back(
        {.params = {torch::zeros({1}).requires_grad_()}, .options = options});
  }
  return groups;
}

std::shared_ptr<Optimizer> make_ours(const ScheduleCase& test_case) {
  if (test_case.optimizer == "Adam") {
    return std::make_shared<Adam>(groups_of(test_case));
  }
  return std::make_shared<SGD>(groups_of(test_case));
}

template <class T, class Options>
std::shared_ptr<torch::optim::Optimizer> make_torchs_as(
    const ScheduleCase& test_case) {
  std::vector<torch::optim::OptimizerParamGroup> empty;
  const std::vector<ParamGroup> groups = groups_of(test_case);
  for (const ParamGroup& group : groups) {
    empty.emplace_back(group.params);
  }
  auto optimizer = std::make_shared<T>(empty, Options(0.1));
  std::vector<ParamGroup> all = param_groups(*optimizer);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const NamedOption& option : groups[i].options) {
      all[i].set(option.first, option.second);
    }
  }
  set_options(*optimizer, all);
  return optimizer;
}

std::shared_ptr<torch::optim::Optimizer> make_torchs(
    const ScheduleCase& test_case) {
  namespace to = torch::optim;
  const std::string& name = test_case.optimizer;
  return name == "SGD"    ? make_torchs_as<to::SGD, to::SGDOptions>(test_case)
         : name == "Adam" ? make_torchs_as<to::Adam, to::AdamOptions>(test_case)
         : name == "AdamW"
             ? make_torchs_as<to::AdamW, to::AdamWOptions>(test_case)
         : name == "RMSprop"
             ? make_torchs_as<to::RMSprop, to::RMSpropOptions>(test_case)
             : make_torchs_as<to::Adagrad, to::AdagradOptions>(test_case);
}

/// Rate and momentum of our group.
std::pair<double, double> rate_of(const ParamGroup& group) {
  const bool is_adam = group.find("betas") != nullptr;
  const bool has_momentum = group.find("momentum") != nullptr;
  return {
      group.lr(),
      is_adam        ? group.betas().first
      : has_momentum ? group.number("momentum")
                     : 0.0};
}

/// Of LibTorch's, as LibTorch has it.
std::pair<double, double> rate_of(
    const torch::optim::OptimizerParamGroup& group) {
  namespace to = torch::optim;
  const to::OptimizerOptions& options = group.options();
  double momentum = 0;
  if (const auto* sgd = dynamic_cast<const to::SGDOptions*>(&options)) {
    momentum = sgd->momentum();
  }
  if (const auto* rms = dynamic_cast<const to::RMSpropOptions*>(&options)) {
    momentum = rms->momentum();
  }
  if (const auto* adam = dynamic_cast<const to::AdamOptions*>(&options)) {
    momentum = std::get<0>(adam->betas());
  }
  if (const auto* adamw = dynamic_cast<const to::AdamWOptions*>(&options)) {
    momentum = std::get<0>(adamw->betas());
  }
  return {options.get_lr(), momentum};
}

/// One case on our side.
class ScheduleSession {
 public:
  explicit ScheduleSession(const ScheduleCase& test_case) : case_(test_case) {
    if (test_case.is_torchs) {
      torchs_ = make_torchs(test_case);
      scheduler_ = make_schedule(test_case.schedule, *torchs_);
    } else {
      ours_ = make_ours(test_case);
      scheduler_ = make_schedule(test_case.schedule, ours_);
    }
    note();
  }

  void steps(std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (torchs_) {
        torchs_->step();
      } else {
        ours_->step();
      }
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
        {{"optimizer", torchs_ ? state_dict(*torchs_) : ours_->state_dict()},
         {"scheduler", scheduler_->state_dict()}});
  }
  void load(const Value& state) {
    if (torchs_) {
      load_state_dict(*torchs_, *state.find("optimizer"));
    } else {
      ours_->load_state_dict(*state.find("optimizer"));
    }
    scheduler_->load_state_dict(*state.find("scheduler"));
  }

 private:
  void note() {
    std::vector<double> row = scheduler_->get_last_lr();
    std::vector<double> momenta;
    const auto add = [&](const auto& groups) {
      for (const auto& group : groups) {
        row.push_back(rate_of(group).first);
        momenta.push_back(rate_of(group).second);
      }
    };
    if (torchs_) {
      add(torchs_->param_groups());
    } else {
      add(ours_->param_groups());
    }
    row.insert(row.end(), momenta.begin(), momenta.end());
    rows_.push_back(std::move(row));
  }

  const ScheduleCase& case_;
  /// One of these two.
  std::shared_ptr<Optimizer> ours_;
  std::shared_ptr<torch::optim::Optimizer> torchs_;
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
    ckpt::save(folder / "cases.pth", table_value(schedule_cases())).value();
    ckpt::save(folder / "refused.pth", table_value(refused_cases())).value();
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
std::string scheduler_text(const Value& state) {
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
  EXPECT_EQ(
      scheduler_text(session.state()),
      scheduler_text(*python.find("middle")));
  session.steps(GetParam().middle, GetParam().steps);
  EXPECT_EQ(session.rows(), rows_of(*python.find("rows")));
  EXPECT_EQ(
      scheduler_text(session.state()),
      scheduler_text(*python.find("end")));
}

TEST_P(Schedules, PythonGoesOnFromOurState) {
  EXPECT_EQ(ScheduleAnswers::of(GetParam()).find("found")->text(), "");
}

TEST_P(Schedules, WeGoOnFromPythonsState) {
  const Value& python = ScheduleAnswers::of(GetParam());
  ScheduleSession session(GetParam());
  session.load(*python.find("middle"));
  EXPECT_EQ(
      scheduler_text(session.state()),
      scheduler_text(*python.find("middle")));
  session.steps(GetParam().middle, GetParam().steps);
  Rows expected = rows_of(*python.find("rows"));
  expected.erase(expected.begin(), expected.begin() + GetParam().middle + 1);
  Rows rows = session.rows();
  rows.erase(rows.begin());
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(
      scheduler_text(session.state()),
      scheduler_text(*python.find("end")));
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
