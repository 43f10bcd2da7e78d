// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/factory.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/optim/support.h"

namespace lockstep::test {

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
        {.step_size = 3, .milestones = {3}, .total_steps = 6});
    for (int i = 0; i < 3; ++i) {
      scheduler->step();
    }
    const double lr = optimizer->param_groups()[0].lr();
    EXPECT_EQ(lr == 0.5, name == "constant") << name << " " << lr;
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
