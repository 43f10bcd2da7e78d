// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/schedules.h"
#include "tests/optim/make_schedule.h"
#include "tests/optim/schedule_cases.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

bool is_same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

} // namespace

TEST(Factory, MakesEveryOptimizerItNames) {
  for (const std::string& name : optimizer_names()) {
    const auto optimizer = make_optimizer(name, make_params(), {.lr = 0.25});
    EXPECT_EQ(optimizer->param_groups()[0].lr(), 0.25) << name;
  }
}

TEST(Factory, OptionsReachTheOptimizer) {
  const auto sgd = make_optimizer(
      "SGD",
      make_params(),
      {.momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  EXPECT_EQ(sgd->param_groups()[0].number("momentum"), 0.9);
  EXPECT_EQ(sgd->param_groups()[0].number("weight_decay"), 5e-4);
  EXPECT_TRUE(sgd->param_groups()[0].flag("nesterov"));
  const auto adamw = make_optimizer("AdamW", make_params(), {.fused = true});
  EXPECT_EQ(adamw->param_groups()[0].number("weight_decay"), 0.01);
  EXPECT_TRUE(adamw->param_groups()[0].flag("fused"));
  EXPECT_TRUE(adamw->param_groups()[0].flag("decoupled_weight_decay"));
}

TEST(Factory, MakesEverySchedulerItNames) {
  for (const std::string& name : scheduler_names()) {
    const auto optimizer =
        make_optimizer("sgd", make_params(), {.lr = 0.5, .momentum = 0.9});
    const auto scheduler = make_scheduler(
        name,
        *optimizer,
        {.step_size = 3,
         .milestones = {3},
         .total_steps = 6,
         .patience = 0,
         .total_iters = 7,
         .t_0 = 5,
         .base_lr = 0.1});
    for (int i = 0; i < 3; ++i) {
      if (auto* plateau = dynamic_cast<ReduceLROnPlateau*>(scheduler.get())) {
        plateau->step(1.0);
      } else {
        scheduler->step();
      }
    }
    const double lr = optimizer->param_groups()[0].lr();
    EXPECT_EQ(lr == 0.5, name == "constant") << name << " " << lr;
  }
}

TEST(Factory, SchedulersTakeLibTorchsOptimizers) {
  torch::optim::SGD sgd(make_params(), torch::optim::SGDOptions(0.5));
  const auto scheduler = make_scheduler("exponentiallr", sgd, {.gamma = 0.25});
  scheduler->step();
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.125);
}

TEST(Factory, ACycleNeedsItsLowestRate) {
  const auto optimizer = make_optimizer("sgd", make_params());
  EXPECT_EQ(
      error_of([&] { make_scheduler("CyclicLR", *optimizer); }).message,
      "cycliclr: expected base_lr, its lowest rate, got none");
}

// Also for `make_scheduler`, which does not mind upper case.
TEST(Factory, KnowsTheStateOfEveryScheduler) {
  for (const ScheduleCase& test_case : schedule_cases()) {
    const std::string kind(test_case.schedule.find("kind")->text());
    std::vector<ParamGroup> groups(test_case.groups.size());
    for (ParamGroup& group : groups) {
      group.params = {torch::zeros({1}).requires_grad_()};
      group.set("initial_lr", 0.1);
    }
    SGD optimizer(std::move(groups), {.lr = 0.1, .momentum = 0.9});
    const auto scheduler = make_schedule(test_case.schedule, optimizer);
    const std::string expected = kind == "ConstantLR"         ? "constant"
                                 : kind == "MultiplicativeLR" ? "LambdaLR"
                                                              : kind;
    EXPECT_TRUE(
        is_same_word(saved_scheduler(scheduler->state_dict()), expected))
        << kind;
  }
}

TEST(Factory, UnknownNameSuggestsTheNearest) {
  const auto optimizer = make_optimizer("sgd", make_params());
  Error error = error_of([&] { make_optimizer("adamv", make_params()); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      error.message,
      "unknown optimizer 'adamv', expected one of sgd, adam, adamw");
  EXPECT_THAT(error.hint, testing::HasSubstr("did you mean 'adam"));
  error = error_of([&] { make_scheduler("step-lr", *optimizer); });
  EXPECT_EQ(error.hint, "did you mean 'steplr'?");
}

} // namespace lockstep::test
