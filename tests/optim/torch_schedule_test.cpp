// SPDX-License-Identifier: BSD-3-Clause
//
// Schedulers on LibTorch's own optimizers.
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/optim/torch_optimizer.h"
#include "tests/optim/support.h"

namespace lockstep::test {

namespace {

using ckpt::Value;

std::vector<at::Tensor> one_weight() {
  return {torch::ones({1}).requires_grad_()};
}

double lr_of(const torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().at(0).options().get_lr();
}

class CountedWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {
    ++count;
  }
  int count = 0;
};

} // namespace

TEST(TorchSchedule, SetsTheRateOfLibTorchsOptimizer) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  StepLR scheduler(sgd, {.step_size = 2, .gamma = 0.5});
  std::vector<double> rates;
  for (int i = 0; i < 4; ++i) {
    rates.push_back(lr_of(sgd));
    sgd.step();
    scheduler.step();
  }
  EXPECT_THAT(rates, testing::ElementsAre(0.1, 0.1, 0.05, 0.05));
}

// The program steps LibTorch's optimizer, which nobody counts.
TEST(TorchSchedule, WarnsOfNoOrder) {
  CountedWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  torch::optim::Adam adam(one_weight(), torch::optim::AdamOptions(0.1));
  StepLR scheduler(adam, {.step_size = 2});
  for (int i = 0; i < 3; ++i) {
    adam.step();
    scheduler.step();
  }
  const auto shared = std::make_shared<torch::optim::Adam>(one_weight());
  const auto optimizer = from_torch(shared);
  StepLR second(*optimizer, {.step_size = 2});
  shared->step();
  second.step();
  second.step();
  EXPECT_EQ(warnings.count, 0);
}

// Python's groups keep it, whichever scheduler made it, and for the next one.
TEST(TorchSchedule, AllSchedulersSeeOneFirstRate) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  {
    LinearLR warmup(sgd, {.start_factor = 0.5, .total_iters = 4});
    const ExponentialLR decay(sgd, {.gamma = 0.9});
    EXPECT_EQ(repr(*decay.state_dict().find("base_lrs")), "[0.1]");
    warmup.step();
  }
  const ConstantLR later(sgd);
  EXPECT_EQ(repr(*later.state_dict().find("base_lrs")), "[0.1]");
  const Value group = group_of(state_dict(sgd), 0);
  EXPECT_EQ(*group.find("initial_lr")->number(), 0.1);
  EXPECT_EQ(*group.find("lr")->number(), lr_of(sgd));
}

// A program that goes on: the file says what the first rate was.
TEST(TorchSchedule, ALoadedFirstRateIsKept) {
  torch::optim::SGD saved(one_weight(), torch::optim::SGDOptions(0.1));
  StepLR first(saved, {.step_size = 1});
  first.step();
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.7));
  load_state_dict(sgd, state_dict(saved));
  const StepLR second(sgd, {.step_size = 5, .last_epoch = 1});
  EXPECT_EQ(repr(*second.state_dict().find("base_lrs")), "[0.1]");
}

TEST(TorchSchedule, OtherChangesOfTheGroupsStay) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  ExponentialLR scheduler(sgd, {.gamma = 0.5});
  auto& options =
      static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options());
  options.lr(0.4).weight_decay(0.25);
  scheduler.step();
  EXPECT_EQ(options.lr(), 0.2);
  EXPECT_EQ(options.weight_decay(), 0.25);
}

TEST(TorchSchedule, AGroupCopiedToAnotherOptimizerBeginsAnew) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  ExponentialLR scheduler(sgd, {.gamma = 0.5});
  scheduler.step();
  torch::optim::SGD other(sgd.param_groups(), torch::optim::SGDOptions(0.3));
  const Value group = group_of(state_dict(other), 0);
  EXPECT_EQ(group.find("initial_lr"), nullptr);
  const ConstantLR second(other, {.factor = 1.0});
  EXPECT_EQ(lr_of(other), 0.05);
  EXPECT_EQ(repr(*second.state_dict().find("base_lrs")), "[0.05]");
}

// LibTorch's own file of the optimizer.
TEST(TorchSchedule, TorchSaveStillWorks) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  OneCycleLR scheduler(
      sgd,
      {.max_lr = {0.4}, .total_steps = 9, .cycle_momentum = false});
  scheduler.step();
  std::stringstream file;
  torch::save(sgd, file);
  torch::optim::SGD other(one_weight(), torch::optim::SGDOptions(0.7));
  torch::load(other, file);
  EXPECT_EQ(lr_of(other), lr_of(sgd));
}

TEST(TorchSchedule, SchedulersOfOneOptimizerGoTogether) {
  torch::optim::SGD sgd(one_weight(), torch::optim::SGDOptions(0.1));
  torch::optim::SGD other(one_weight(), torch::optim::SGDOptions(0.1));
  const auto decay =
      std::make_shared<ExponentialLR>(sgd, ExponentialLROptions{.gamma = 0.5});
  const auto stairs =
      std::make_shared<StepLR>(sgd, StepLROptions{.step_size = 1});
  ChainedScheduler chain({decay, stairs});
  chain.step();
  EXPECT_DOUBLE_EQ(lr_of(sgd), 0.1 * 0.5 * 0.1);
  const auto foreign = std::make_shared<LinearLR>(other);
  const Error error = error_of([&] { ChainedScheduler({decay, foreign}); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(
      error.message,
      testing::HasSubstr("expects all schedulers to belong to the same "
                         "optimizer, but got scheduler LinearLR at index 1"));
}

TEST(TorchSchedule, AnUnknownOptimizerIsRefused) {
  torch::optim::LBFGS lbfgs(one_weight());
  const Error error = error_of([&] { StepLR(lbfgs, {.step_size = 1}); });
  EXPECT_EQ(error.code, ErrorCode::kUnsupported) << error.message;
}

} // namespace lockstep::test
