// SPDX-License-Identifier: BSD-3-Clause
//
// The scale of the loss against Python's: tests/oracle/grad_scaler.py.
#include "lockstep/train/hooks/loss_scaler.h"

#include <cstdlib>
#include <limits>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// What a script of Python's does in a step, with the hook.
struct ScaledSteps {
  explicit ScaledSteps(const LossScalerOptions& options)
      : hook(loss_scaler(options)) {}

  void step(std::int64_t number, char kind) {
    const auto factor = static_cast<float>(hook->loss_scale());
    at::Tensor grad = torch::tensor({0.3F, -0.1F, 0.7F}) * number * factor;
    if (kind != '.') {
      grad[1] = kind == 'i' ? std::numeric_limits<float>::infinity()
                            : std::numeric_limits<float>::quiet_NaN();
    }
    parameter.mutable_grad() = grad;
    hook->before_update(
        {.module = module, .optimizer = optimizer, .group = {}});
    if (!hook->skips_update()) {
      optimizer.step();
    }
  }
  ckpt::Value state() {
    ValueBuilder builder;
    return hook->parts().front().save(builder);
  }

  torch::nn::Module module;
  at::Tensor parameter =
      torch::tensor({1.0F, -2.0F, 0.1F}).set_requires_grad(true);
  SGD optimizer{Params{parameter}, {.lr = 0.1, .momentum = 0.9}};
  std::shared_ptr<StepHook> hook;
};

TEST(LossScaler, HasPythonsTrace) {
  const std::string pattern = "...i....n.nii........i.";
  ScaledSteps steps({.init_scale = 64.0, .growth_interval = 3});
  std::int64_t number = 0;
  for (const std::string& line :
       test::python_lines("grad_scaler.py", {pattern, "64", "3"})) {
    const auto index = static_cast<std::size_t>(number);
    ASSERT_LT(index, pattern.size());
    steps.step(++number, pattern[index]);
    const auto words = split(line, ' ');
    ASSERT_EQ(words.size(), 5U) << line;
    EXPECT_EQ(steps.hook->loss_scale(), std::strtod(words[0].c_str(), nullptr))
        << "step " << number;
    const ckpt::Value state = steps.state();
    EXPECT_EQ(
        std::to_string(*state.find("_growth_tracker")->as_int()),
        words[1])
        << "step " << number;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(
          steps.parameter[static_cast<std::int64_t>(i)].item<float>(),
          std::strtof(words[2 + i].c_str(), nullptr))
          << "step " << number << ", parameter " << i;
    }
  }
  EXPECT_EQ(number, std::ssize(pattern));
}

TEST(LossScaler, GoesOnFromItsState) {
  ScaledSteps whole({.init_scale = 64.0, .growth_interval = 3});
  ScaledSteps first({.init_scale = 64.0, .growth_interval = 3});
  whole.step(1, '.');
  whole.step(2, '.');
  first.step(1, '.');
  first.step(2, '.');
  ScaledSteps second({});
  second.hook->parts().front().load(first.state());
  whole.step(3, '.');
  second.step(3, '.');
  EXPECT_EQ(whole.hook->loss_scale(), 128.0);
  EXPECT_EQ(second.hook->loss_scale(), 128.0);
  EXPECT_THROW(
      second.hook->parts().front().load(ckpt::Value::dict({})),
      Exception);
}

class ScaledRun : public TrainerFixture {
 protected:
  // Of weights that overflow in float16 at the first scale, and not at others.
  TrainConfig large(const std::string& folder) {
    TrainConfig config = uneven(folder);
    config.amp = "fp16";
    config.max_train_samples = 256;
    return config;
  }
};

// A gradient that is infinite at one step.
struct Overflow : StepHook {
  [[nodiscard]] std::string text() const override {
    return "overflows at step 3";
  }
  [[nodiscard]] double loss_scale() const override {
    return is_now ? 1e36 : 1.0;
  }
  void after_update(const StepScope& scope) override {
    is_now = scope.step == 2;
  }
  bool is_now = false;
};

TEST_F(ScaledRun, RanksLeaveTheSameStepsOut) {
  const TrainConfig one = large("one");
  train(one, {.hooks = {std::make_shared<Overflow>()}});
  const ckpt::Value saved = checkpoint("one");
  EXPECT_EQ(saved.find("scaler")->find("scale")->number(), 32768.0);
  TrainConfig both = large("two");
  const std::vector<OwnParts> of_ranks{named_parts(both), named_parts(both)};
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        const auto rank = static_cast<std::size_t>(group.rank());
        Trainer(
            both,
            {.group = group,
             .own = of_ranks[rank],
             .hooks = {std::make_shared<Overflow>()}})
            .run();
      });
  EXPECT_THAT(errors, Each(""));
  const ckpt::Value of_both = checkpoint("two");
  EXPECT_EQ(of_both.find("scaler")->find("scale")->number(), 32768.0);
}

TEST_F(ScaledRun, WithoutItsStateItBeginsFreshAndSaysSo) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  train(wanted);
  wanted.amp = "fp16";
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::Contains(HasSubstr("no scaler in the file")));
}

TEST_F(ScaledRun, GraphsOfOneScaleAreRefused) {
  TrainConfig wanted = large("run");
  wanted.cuda_graphs = true;
  try {
    train(wanted);
    ADD_FAILURE() << "no error";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().detail, "E_FLAGS");
  }
}

} // namespace
} // namespace lockstep::train
