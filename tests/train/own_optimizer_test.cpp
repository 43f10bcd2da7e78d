// SPDX-License-Identifier: BSD-3-Clause
//
// Runs with an optimizer and a schedule of the program's own: whoever made
// them, a run that stops and goes on has the bits of one without interruption.
#include <functional>

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/device/device_list.h"
#include "lockstep/distributed/zero_redundancy_optimizer.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/optim/torch_optimizer.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/dropout_net.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class OwnOptimizer : public TrainerFixture,
                     public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()).starts_with("sim")) {
      parse_devices("sim*3"); // as many as other tests of this program want
    }
  }
  TrainConfig config(const std::string& folder) {
    TrainConfig config = small(folder);
    config.devices = GetParam();
    config.threads = 2;
    config.resume = "auto";
    return config;
  }
  static std::shared_ptr<DropoutNet> net(const TrainConfig& config) {
    at::manual_seed(5);
    for (const c10::Device& device : parse_devices(config.devices)) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      generator.set_current_seed(5);
    }
    return std::make_shared<DropoutNet>();
  }
  /// One start of a program, which is asked to stop after `stop` steps.
  using Program = std::function<void(const TrainConfig& config, int stop)>;
  void run(
      const TrainConfig& config,
      const OwnParts& own,
      int stop,
      RecordingLog* log = nullptr) {
    int steps = 0;
    train(
        config,
        {.log = log,
         .should_stop = [&] { return ++steps == stop; },
         .own = own});
  }
  /// That it does not matter where the program stops.
  void expect_exact(const Program& program) {
    program(config("straight"), 0);
    for (const int stop : {1, 3, 5}) {
      const std::string folder = format("stopped-{}", stop);
      program(config(folder), stop);
      TrainConfig next = config(folder);
      next.resume_exact = true;
      program(next, 0);
      for (const std::string name :
           {"checkpoint.pth.tar", "model_best.pth.tar", "steps.csv"}) {
        EXPECT_EQ(get("straight", name) == get(folder, name), true)
            << name << " after a stop at " << stop;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Devices,
    OwnOptimizer,
    ::testing::Values("cpu", "cpu*2", "sim*2"),
    [](const auto& test) {
      std::string name = test.param;
      std::erase(name, '*');
      return name;
    });

TEST_P(OwnOptimizer, OfLibTorchGoesOnExactly) {
  expect_exact([this](const TrainConfig& config, int stop) {
    const auto model = net(config);
    torch::optim::Adam adam(model->parameters(), 0.01);
    run(config, {.model = model, .optimizer = adam}, stop);
  });
  EXPECT_THAT(get("straight", "args.yaml"), HasSubstr("opt: \"own:Adam\""));
  const ckpt::Value root = checkpoint("straight");
  EXPECT_EQ(root.find("optimizer")->find("state")->as_dict()->items.size(), 6U)
      << "the state of each parameter";
}

// Writes that LibTorch's counters do not see.
class Clamp final : public StepHook {
 public:
  [[nodiscard]] std::string text() const override {
    return "weights are clamped";
  }
  void after_update(const StepScope& scope) override {
    for (at::Tensor& parameter : scope.module.parameters()) {
      parameter.data().clamp_(-0.03, 0.03);
    }
  }
};

TEST_P(OwnOptimizer, WhatAHookWritesIsWhatTheReplicasHave) {
  int runs = 0;
  const auto losses = [&](const std::string& devices, bool by_hook) {
    TrainConfig wanted = config(format("run{}", ++runs));
    wanted.devices = devices;
    wanted.model = "mlp";
    wanted.freeze = "layers.1";
    const auto observer = std::make_shared<RecordingObserver>();
    TrainerOptions options{.observers = {observer}};
    if (by_hook) {
      options.hooks = {std::make_shared<Clamp>()};
    }
    train(wanted, options);
    return observer->losses();
  };
  const auto expected = losses("cpu", true);
  EXPECT_THAT(
      losses(GetParam(), true),
      ::testing::Pointwise(::testing::FloatNear(1e-4F), expected));
  EXPECT_NE(losses("cpu", false), expected) << "the hook changes something";
}

TEST_P(OwnOptimizer, WithGroupsAndAScheduleGoesOnExactly) {
  expect_exact([this](const TrainConfig& config, int stop) {
    const auto model = net(config);
    ParamGroup slow{.params = model->first->parameters()};
    slow.set_lr(0.001);
    ParamGroup rest{.params = model->norm->parameters()};
    for (const at::Tensor& parameter : model->last->parameters()) {
      rest.params.push_back(parameter);
    }
    // Its groups share the pair of betas, before and after.
    AdamW adam({slow, rest}, {.lr = 0.01});
    run(config,
        {.model = model,
         .optimizer = adam,
         .schedule = std::make_shared<StepLR>(
             adam,
             StepLROptions{.step_size = 3, .gamma = 0.5}),
         .schedules_steps = true},
        stop);
  });
  // 8 steps: two drops, and the rate of the last step came before a third.
  EXPECT_THAT(get("straight", "steps.csv"), EndsWith(",0.00025\n"));
}

TEST_P(OwnOptimizer, WithACycleOfEpochsGoesOnExactly) {
  const Program program = [this](const TrainConfig& config, int stop) {
    const auto model = net(config);
    SGD sgd(*model, {.lr = 0.1, .momentum = 0.9});
    run(config,
        {.model = model,
         .optimizer = sgd,
         .schedule = std::make_shared<OneCycleLR>(
             sgd,
             OneCycleLROptions{.max_lr = {0.1}, .total_steps = config.epochs})},
        stop);
  };
  expect_exact(program);
  TrainConfig longer = config("straight");
  longer.epochs = 3;
  try {
    program(longer, 0);
    ADD_FAILURE() << "beyond its end";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().detail, "E_SCHEDULE_END");
    EXPECT_THAT(
        exception.error().message,
        HasSubstr("0 of 2 steps left, the run would make 1"));
    EXPECT_THAT(exception.error().hint, HasSubstr("--epochs 2 ends with it"));
  }
}

// Python takes a sequence of one, which has no milestones.
TEST_P(OwnOptimizer, WithASequenceOfOneGoesOnExactly) {
  expect_exact([this](const TrainConfig& config, int stop) {
    const auto model = net(config);
    SGD sgd(*model, {.lr = 0.1});
    const auto cosine = std::make_shared<CosineAnnealingLR>(
        sgd,
        CosineAnnealingLROptions{.t_max = config.epochs});
    run(config,
        {.model = model,
         .optimizer = sgd,
         .schedule = std::make_shared<SequentialLR>(
             sgd,
             SequentialLROptions{.schedulers = {cosine}})},
        stop);
  });
}

TEST_P(OwnOptimizer, IsThatOfTheSettingsIfItIsMadeSo) {
  const TrainConfig named = config("named");
  run(named, {.model = net(named)}, 0);
  const TrainConfig own = config("own");
  const auto model = net(own);
  SGD sgd(
      *model,
      {.lr = named.lr,
       .momentum = named.momentum,
       .weight_decay = named.weight_decay});
  run(own, {.model = model, .optimizer = sgd}, 0);
  EXPECT_EQ(get("named", "steps.csv"), get("own", "steps.csv"));
}

TEST_P(OwnOptimizer, GoesOnWithTheStateOfANamedOne) {
  TrainConfig straight = config("straight");
  run(straight, {.model = net(straight)}, 0);
  TrainConfig begun = config("begun");
  run(begun, {.model = net(begun)}, 3);
  const auto model = net(begun);
  SGD sgd(*model, {.lr = 0.7});
  run(begun, {.model = model, .optimizer = sgd}, 0);
  EXPECT_EQ(get("straight", "steps.csv"), get("begun", "steps.csv"));
}

class OwnOptimizerErrors : public TrainerFixture {
 protected:
  Error refused(const TrainConfig& config, const OwnParts& own) {
    try {
      train(config, {.own = own});
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
};

TEST_F(OwnOptimizerErrors, ARunGoesOnWithTheOptimizerThatItBeganWith) {
  TrainConfig config = small("run");
  const auto model = std::make_shared<DropoutNet>();
  torch::optim::Adam adam(model->parameters(), 0.01);
  train(config, {.own = {.model = model, .optimizer = adam}});
  config.resume = config.output;
  EXPECT_THAT(
      refused(config, {.model = model}).message,
      HasSubstr("trained with --opt own:Adam, the run asks for --opt sgd"));
  SGD sgd(*model, {.lr = 0.1});
  EXPECT_EQ(
      refused(config, {.model = model, .optimizer = sgd}).detail,
      "E_OTHER_SETTING");
  config.opt = "own:Adam"; // as a command line has it from the checkpoint
  const Error error = refused(config, {.model = model});
  EXPECT_EQ(error.detail, "E_OWN_PARTS");
  EXPECT_THAT(error.hint, HasSubstr(".own.optimizer"));
}

TEST_F(OwnOptimizerErrors, AScheduleNeedsItsOptimizer) {
  const auto model = std::make_shared<DropoutNet>();
  SGD sgd(*model, {.lr = 0.1});
  OwnParts own{
      .model = model,
      .schedule = std::make_shared<StepLR>(sgd, StepLROptions{.step_size = 1})};
  EXPECT_THAT(
      refused(small("run"), own).hint,
      HasSubstr("set .own.optimizer, too"));
}

TEST_F(OwnOptimizerErrors, AScheduleIsOfTheRunsOptimizer) {
  const auto model = std::make_shared<DropoutNet>();
  const auto schedule = [](OptimizerRef optimizer) {
    return std::make_shared<StepLR>(
        std::move(optimizer),
        StepLROptions{.step_size = 1});
  };
  torch::optim::SGD sgd(model->parameters(), 0.1);
  SGD other(*model, {.lr = 0.1});
  const Error error = refused(
      small("run"),
      {.model = model, .optimizer = sgd, .schedule = schedule(other)});
  EXPECT_EQ(error.detail, "E_OWN_PARTS");
  EXPECT_THAT(error.message, HasSubstr("is of another optimizer"));
  OwnParts own{
      .model = model,
      .train_data = as_dataset(make_dataset(at::rand({4, 784}), at::arange(4))),
      .optimizer = sgd,
      .schedule = schedule(sgd)};
  check_parts(small("run"), own);
  // Wrappers pass on what is changed in what they wrap.
  const auto check_zero = [&](const dist::ProcessGroup& group) {
    torch::optim::SGD* within = nullptr;
    const auto make = [&](const Params& params) {
      auto made = std::make_unique<torch::optim::SGD>(
          params.groups()[0].params,
          torch::optim::SGDOptions(0.1));
      within = made.get();
      return from_torch(std::move(made));
    };
    ZeroRedundancyOptimizer zero(model->parameters(), make, group);
    own.optimizer = zero;
    own.schedule = schedule(*within);
    check_parts(small("run"), own);
    own.schedule.reset();
    own.optimizer.reset();
  };
  EXPECT_THAT(dist::run_thread_ranks(1, check_zero), Contains(""));
}

TEST_F(OwnOptimizerErrors, AnOptimizerOfAnotherModelIsRefused) {
  const auto model = std::make_shared<DropoutNet>();
  SGD sgd(DropoutNet(), {.lr = 0.1});
  const Error error = refused(small("run"), {.model = model, .optimizer = sgd});
  EXPECT_EQ(error.detail, "E_OWN_PARTS");
  EXPECT_THAT(error.message, HasSubstr("would not change the model"));
}

TEST_F(OwnOptimizerErrors, SettingsWithoutEffectAreTold) {
  const auto model = std::make_shared<DropoutNet>();
  SGD sgd(*model, {.lr = 0.1});
  TrainConfig config = small("run");
  config.momentum = 0.5;
  RecordingLog log;
  train(config, {.log = &log, .own = {.model = model, .optimizer = sgd}});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      AllOf(
          Contains("--momentum has no effect on an optimizer of the program's "
                   "own"),
          Contains(HasSubstr("--lr has no effect"))));
}

} // namespace
} // namespace lockstep::train
