// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/scheduler.h"

#include <array>
#include <map>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/schedules.h"
#include "tests/optim/make_schedule.h"
#include "tests/optim/schedule_rows.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using ckpt::Value;
using testing::ElementsAre;
using testing::HasSubstr;

class SchedulerTest : public testing::Test {
 protected:
  std::string refused(const auto& action) {
    const Error error = error_of(action);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << error.message;
    return error.message;
  }
  std::string mismatch(Scheduler& scheduler, const Value& state) {
    const std::string before = repr(scheduler.state_dict());
    const Error error = error_of([&] { scheduler.load_state_dict(state); });
    EXPECT_EQ(error.code, ErrorCode::kMismatch) << error.message;
    EXPECT_EQ(repr(scheduler.state_dict()), before) << "changed by an error";
    return error.message;
  }
  /// The learning rate at the start and after each of three steps.
  std::vector<double> four(Scheduler& scheduler) {
    std::vector<double> rates;
    for (int i = 0; i < 4; ++i) {
      rates.push_back(scheduler.get_last_lr()[0]);
      scheduler.step();
    }
    return rates;
  }

  SGD sgd_{make_params(), {.lr = 0.1, .momentum = 0.9}};
};

class WarningTexts : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    texts.push_back(warning.msg());
  }
  std::vector<std::string> texts;
};

} // namespace

TEST_F(SchedulerTest, StepLRKeepsThePublishedGoldens) {
  StepLR scheduler(sgd_, {.step_size = 2, .gamma = 0.5});
  EXPECT_THAT(four(scheduler), ElementsAre(0.1, 0.1, 0.05, 0.05));
  EXPECT_EQ(sgd_.param_groups()[0].lr(), 0.025);
  EXPECT_EQ(sgd_.param_groups()[0].number("initial_lr"), 0.1);
}

TEST_F(SchedulerTest, StateHasPythonsKeysInPythonsOrder) {
  const StepLR scheduler(sgd_, {.step_size = 2, .gamma = 0.5});
  EXPECT_EQ(
      repr(scheduler.state_dict()),
      "{'step_size': 2, 'gamma': 0.5, 'base_lrs': [0.1], 'last_epoch': 0, "
      "'_step_count': 1, '_is_initial': False, "
      "'_get_lr_called_within_step': False, '_last_lr': [0.1]}");
}

TEST_F(SchedulerTest, MilestonesAreACounterInOrderOfMention) {
  MultiStepLR scheduler(sgd_, {.milestones = {3, 1, 3}});
  EXPECT_EQ(
      repr(*scheduler.state_dict().find("milestones")),
      "Counter({3: 2, 1: 1})");
}

TEST_F(SchedulerTest, ConstantWithFactorOneKeepsTheRate) {
  ConstantLR scheduler(sgd_, {.factor = 1.0});
  EXPECT_THAT(four(scheduler), ElementsAre(0.1, 0.1, 0.1, 0.1));
}

TEST_F(SchedulerTest, OneCycleMovesAdamsFirstBeta) {
  Adam adam(make_params(), {.lr = 0.1, .betas = {0.9, 0.97}});
  OneCycleLR scheduler(adam, {.max_lr = {0.1}, .total_steps = 10});
  const ParamGroup& group = adam.param_groups()[0];
  EXPECT_EQ(group.betas(), std::pair(0.95, 0.97));
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(group.betas(), std::pair(0.85, 0.97));
  EXPECT_EQ(group.lr(), 0.1);
}

TEST_F(SchedulerTest, ContinuesFromAStateOnAnotherOptimizer) {
  CosineAnnealingLR first(sgd_, {.t_max = 10});
  first.step();
  first.step();
  SGD other(make_params(), {.lr = 0.1, .momentum = 0.9});
  CosineAnnealingLR second(other, {.t_max = 3});
  other.load_state_dict(sgd_.state_dict());
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.get_last_lr(), first.get_last_lr());
  first.step();
  second.step();
  EXPECT_EQ(repr(second.state_dict()), repr(first.state_dict()));
}

TEST_F(SchedulerTest, ContinuingWithoutInitialLrIsRefused) {
  EXPECT_THAT(
      refused([&] { StepLR(sgd_, {.step_size = 2, .last_epoch = 4}); }),
      HasSubstr("param 'initial_lr' is not specified in param_groups[0] when "
                "resuming scheduler with last_epoch >= 0.\nThis typically"));
}

TEST_F(SchedulerTest, LastEpochContinuesWithInitialLr) {
  sgd_.param_groups()[0].set("initial_lr", 0.4);
  StepLR scheduler(sgd_, {.step_size = 2, .gamma = 0.5, .last_epoch = 4});
  EXPECT_EQ(scheduler.last_epoch(), 5);
  EXPECT_THAT(four(scheduler), ElementsAre(0.1, 0.05, 0.05, 0.025));
}

TEST_F(SchedulerTest, StateOfAnotherSchedulerIsRefused) {
  StepLR step(sgd_, {.step_size = 2});
  CosineAnnealingLR cosine(sgd_, {.t_max = 10});
  EXPECT_EQ(
      mismatch(step, cosine.state_dict()),
      "StepLR state has no 'step_size'");
  EXPECT_EQ(
      mismatch(cosine, step.state_dict()),
      "CosineAnnealingLR state has no 'T_max'");
  EXPECT_EQ(
      mismatch(step, Value::list({})),
      "scheduler state: expected a dict, got 'list'");
}

// Two differ in their numbers alone: LambdaLR and MultiplicativeLR.
TEST_F(SchedulerTest, NoSchedulerTakesTheStateOfAnotherKind) {
  std::map<std::string, Value> kinds;
  for (const ScheduleRow& row : all_schedule_rows()) {
    kinds.emplace(row.schedule.find("kind")->text(), row.schedule);
  }
  EXPECT_EQ(kinds.size(), 16U);
  const auto is_lambda = [](const std::string& kind) {
    return kind == "LambdaLR" || kind == "MultiplicativeLR";
  };
  for (const auto& [kind, schedule] : kinds) {
    const auto saved = make_schedule(schedule, sgd_);
    for (const auto& [other, its_schedule] : kinds) {
      if (other != kind && !(is_lambda(kind) && is_lambda(other))) {
        SCOPED_TRACE(format("{} into {}", kind, other));
        mismatch(*make_schedule(its_schedule, sgd_), saved->state_dict());
      }
    }
  }
}

TEST_F(SchedulerTest, AttributesOfCallableObjectsAreRefused) {
  LambdaLR lambda(sgd_, {.lr_lambda = {[](std::int64_t) { return 0.5; }}});
  CyclicLR cycle(sgd_, {.base_lr = {0.1}, .max_lr = {1}});
  const auto check =
      [](Scheduler& scheduler, const char* key, const Value& bad) {
        const std::string before = repr(scheduler.state_dict());
        Value state = scheduler.state_dict();
        state.set(key, bad);
        const Error error = error_of([&] { scheduler.load_state_dict(state); });
        EXPECT_EQ(error.code, ErrorCode::kUnsupported) << error.message;
        EXPECT_THAT(error.message, HasSubstr("of a callable object"));
        EXPECT_EQ(repr(scheduler.state_dict()), before);
      };
  const Value attributes = Value::dict({{"decay", 0.5}});
  check(lambda, "lr_lambdas", Value::list({attributes}));
  check(cycle, "_scale_fn_custom", attributes);
}

TEST_F(SchedulerTest, AComposedStateIsTakenAsAWholeOrNotAtAll) {
  const auto warmup = std::make_shared<LinearLR>(sgd_);
  const auto decay =
      std::make_shared<ExponentialLR>(sgd_, ExponentialLROptions{.gamma = 0.5});
  SequentialLR scheduler(
      sgd_,
      {.schedulers = {warmup, decay}, .milestones = {3}});
  const auto other =
      std::make_shared<StepLR>(sgd_, StepLROptions{.step_size = 1});
  SequentialLR source(
      sgd_,
      {.schedulers =
           {std::make_shared<LinearLR>(sgd_, LinearLROptions{.total_iters = 9}),
            other},
       .milestones = {3}});
  EXPECT_THAT(
      mismatch(scheduler, source.state_dict()),
      HasSubstr("is of another scheduler"));
  SequentialLR shorter(sgd_, {.schedulers = {warmup}});
  EXPECT_EQ(
      mismatch(scheduler, shorter.state_dict()),
      "'_schedulers' of SequentialLR state: expected 2 schedulers, got 1");
}

// As a `Scheduler` it can be told of no metric.
TEST_F(SchedulerTest, APlateauWithoutItsMetricIsRefused) {
  ReduceLROnPlateau plateau(sgd_);
  Scheduler& scheduler = plateau;
  EXPECT_THAT(
      refused([&] { scheduler.step(); }),
      HasSubstr("missing 1 required positional argument: 'metrics'"));
  EXPECT_THAT(
      refused([&] { scheduler.fast_forward(1); }),
      HasSubstr("'metrics'"));
  EXPECT_EQ(plateau.last_epoch(), 0);
}

TEST_F(SchedulerTest, WhatCannotBeginAtAMilestoneIsRefusedAtOnce) {
  const auto warmup = std::make_shared<LinearLR>(sgd_);
  const auto chain = std::make_shared<ChainedScheduler>(
      std::vector<std::shared_ptr<Scheduler>>{
          std::make_shared<LinearLR>(sgd_)});
  const Error error = error_of([&] {
    SequentialLR(sgd_, {.schedulers = {warmup, chain}, .milestones = {3}});
  });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_EQ(
      error.message,
      "SequentialLR cannot begin the ChainedScheduler at index 1 at a "
      "milestone");
}

TEST_F(SchedulerTest, AGroupAddedToAPlateauHasTheRateOfAll) {
  ReduceLROnPlateau all(sgd_, {.factor = 0.5, .patience = 0, .min_lr = {0.2}});
  sgd_.add_param_group({.params = make_params(), .options = {{"lr", 0.8}}});
  all.step(1);
  all.step(1);
  EXPECT_THAT(all.get_last_lr(), ElementsAre(0.1, 0.4));
  SGD two(
      {{.params = {make_params()[0]}}, {.params = {make_params()[1]}}},
      {.lr = 0.1});
  ReduceLROnPlateau own(two, {.patience = 0, .min_lr = {0.1, 0.2}});
  two.add_param_group({.params = {make_params()[2]}});
  own.step(1);
  EXPECT_THAT(
      refused([&] { own.step(1); }),
      HasSubstr("differs from when `ReduceLROnPlateau` was initialized (2)"));
}

TEST_F(SchedulerTest, StateOfOtherGroupsIsRefused) {
  const std::vector<at::Tensor> params = make_params();
  SGD two({{.params = {params[0]}}, {.params = {params[1]}}}, {.lr = 0.1});
  const StepLR source(two, {.step_size = 2});
  StepLR target(sgd_, {.step_size = 2});
  EXPECT_EQ(
      mismatch(target, source.state_dict()),
      "'_last_lr' of scheduler state: expected 1 values, one per parameter "
      "group, got 2");
}

// As in Python, where StepLR takes them and CosineAnnealingLR's zip() does not.
TEST_F(SchedulerTest, GroupsThatAreAddedLater) {
  CosineAnnealingLR cosine(sgd_, {.t_max = 2});
  StepLR decay(sgd_, {.step_size = 1});
  sgd_.add_param_group({.params = make_params(), .options = {{"lr", 0.5}}});
  decay.step();
  EXPECT_DOUBLE_EQ(decay.get_last_lr().at(1), 0.05);
  decay.load_state_dict(decay.state_dict());
  EXPECT_THAT(
      refused([&] {
        for (int i = 0; i < 4; ++i) {
          cosine.step();
        }
      }),
      HasSubstr("the schedule began with 1 parameter group, the optimizer has "
                "2 now"));
}

TEST_F(SchedulerTest, OldStateWithVerboseLoads) {
  StepLR scheduler(sgd_, {.step_size = 2});
  const Value state = scheduler.state_dict();
  ckpt::Dict old;
  for (const auto& [key, value] : state.as_dict()->items) {
    if (*key.as_string() != "_is_initial") {
      old.items.emplace_back(key, value);
    }
  }
  old.items.emplace_back("verbose", false);
  scheduler.step();
  scheduler.load_state_dict(old);
  EXPECT_EQ(repr(scheduler.state_dict()), repr(state));
}

TEST_F(SchedulerTest, BadArgumentsGivePyTorchsTexts) {
  EXPECT_THAT(
      refused([&] { StepLR(sgd_, {.step_size = 0}); }),
      HasSubstr("step_size"));
  EXPECT_THAT(
      refused([&] { CosineAnnealingLR(sgd_, {.t_max = 0}); }),
      HasSubstr("T_max"));
  EXPECT_EQ(
      refused([&] { OneCycleLR(sgd_, {.max_lr = {0.1}}); }),
      "You must define either total_steps OR (epochs AND steps_per_epoch)");
  EXPECT_EQ(
      refused([&] { OneCycleLR(sgd_, {.max_lr = {1}, .total_steps = -4}); }),
      "Expected positive integer total_steps, but got -4");
  EXPECT_EQ(
      refused([&] {
        OneCycleLR(sgd_, {.max_lr = {1}, .total_steps = 4, .pct_start = 2});
      }),
      "Expected float between 0 and 1 pct_start, but got 2.0");
  EXPECT_EQ(
      refused([&] {
        OneCycleLR(
            sgd_,
            {.max_lr = {1}, .total_steps = 4, .anneal_strategy = "step"});
      }),
      "anneal_strategy must be one of 'cos' or 'linear', instead got step");
  EXPECT_EQ(
      refused([&] {
        OneCycleLR(sgd_, {.max_lr = {1, 2}, .total_steps = 4});
      }),
      "max_lr must have the same length as optimizer.param_groups. max_lr has "
      "2 values, param_groups has 1.");
}

TEST_F(SchedulerTest, OneCycleEndsAfterItsSteps) {
  OneCycleLR scheduler(sgd_, {.max_lr = {0.1}, .total_steps = 2});
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(
      refused([&] { scheduler.step(); }),
      "Tried to step 3 times. The specified number of total steps is 2");
}

TEST_F(SchedulerTest, AStepBeforeTheOptimizersWarnsOnceInPyTorchsWords) {
  WarningTexts warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const auto steps = [](Scheduler& scheduler) {
    for (int i = 0; i < 3; ++i) {
      scheduler.step();
    }
  };
  StepLR step(sgd_, {.step_size = 2});
  MultiStepLR multi(sgd_, {.milestones = {3}});
  ConstantLR constant(sgd_);
  CosineAnnealingLR cosine(sgd_, {.t_max = 10});
  OneCycleLR cycle(sgd_, {.max_lr = {0.1}, .total_steps = 9});
  const std::array<Scheduler*, 5> all{
      &step,
      &multi,
      &constant,
      &cosine,
      &cycle};
  for (std::size_t i = 0; i < all.size(); ++i) {
    steps(*all.at(i));
    ASSERT_EQ(warnings.texts.size(), i + 1);
    EXPECT_THAT(
        warnings.texts.back(),
        HasSubstr("Detected call of `lr_scheduler.step()` before "
                  "`optimizer.step()`."));
  }
  warnings.texts.clear();
  Adam adam(make_params());
  StepLR second(adam, {.step_size = 2});
  steps(second);
  EXPECT_EQ(warnings.texts.size(), 1U);

  // Not after the optimizer's step, in later schedules neither.
  warnings.texts.clear();
  adam.step();
  StepLR right(adam, {.step_size = 2});
  steps(right);
  // Nor for what goes on from a state, nor where that is meant.
  Adam other(make_params());
  StepLR resumed(other, {.step_size = 2});
  resumed.load_state_dict(right.state_dict());
  steps(resumed);
  StepLR skipped(other, {.step_size = 2});
  skipped.fast_forward(2);
  steps(skipped);
  EXPECT_THAT(warnings.texts, testing::IsEmpty());
  // A step before the first schedule began does not count, as in PyTorch.
  Adam stepped(make_params());
  stepped.step();
  StepLR late(stepped, {.step_size = 2});
  steps(late);
  EXPECT_EQ(warnings.texts.size(), 1U);
}

} // namespace lockstep::test
