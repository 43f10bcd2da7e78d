// SPDX-License-Identifier: BSD-3-Clause
//
// Runs that go on from files whose optimizers have several parameter groups
// (tests/oracle/train_groups.py).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/checkpoints.h"
#include "tests/support/python.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ForeignGroups : public TrainerFixture {
 protected:
  TrainConfig next(const std::string& name) {
    TrainConfig config = small(name + "-run");
    config.lr_step_size = 1;
    config.resume = dir_ / (name + ".pth.tar");
    return config;
  }
};

TEST_F(ForeignGroups, GoOnWithPythonsBits) {
  for (const std::string& line :
       test::python_lines("train_groups.py", {dir_.path()})) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    SCOPED_TRACE(name);
    std::vector<float> expected;
    for (std::string word; words >> word;) {
      expected.push_back(std::strtof(word.c_str(), nullptr));
    }
    TrainConfig config = next(name);
    auto seen = std::make_shared<RecordingObserver>();
    RecordingLog log;
    train(config, {.log = &log, .observers = {seen}});
    ASSERT_EQ(expected.size(), 4U);
    EXPECT_EQ(seen->losses(), expected);
    EXPECT_THAT(
        log.lines[LogLevel::kInfo],
        Contains(HasSubstr("the optimizer has ")));
    // Its own checkpoint has the groups, and their names.
    config.resume = config.output;
    config.epochs = 3;
    EXPECT_EQ(train(config).steps, 12);
    const ckpt::Value saved = checkpoint(name + "-run");
    EXPECT_NE(
        saved.find("optimizer")
            ->find("param_groups")
            ->elements()
            ->at(1)
            .find("param_names"),
        nullptr);
  }
}

// What most of the model was trained with; nobody has said another decay.
TEST_F(ForeignGroups, SettingsAreThoseOfTheLargestGroups) {
  test::python_lines("train_groups.py", {dir_.path()});
  const auto args_of = [&](const char* name) {
    return *find_resumption(real_fs(), next(name))
                ->checkpoint.root.find("args");
  };
  EXPECT_EQ((*args_of("timm").find("weight_decay")).number(), 1e-3);
  EXPECT_EQ((*args_of("rates").find("lr")).number(), 0.1);
}

// As in PyTorch, where a scheduler is made for groups that say no first rate.
TEST_F(ForeignGroups, OfSeveralRatesBeginWithTheirOwn) {
  test::python_lines("train_groups.py", {dir_.path()});
  const auto rates_of = [](const ckpt::Value& file, const char* name) {
    std::vector<double> rates;
    const auto groups = file.find("optimizer")->find("param_groups");
    for (const ckpt::Value& group : *groups->elements()) {
      rates.push_back(group.find(name)->number().value());
    }
    return rates;
  };
  const ckpt::Value before =
      ckpt::load(dir_ / "rates_alone.pth.tar").value().root;
  train(next("rates_alone"));
  const auto first = rates_of(checkpoint("rates_alone-run"), "initial_lr");
  EXPECT_EQ(first, rates_of(before, "lr"));
  EXPECT_NE(first[0], first[1]);
}

// timm's file has no schedule, and its metric is no accuracy of the first
// guess.
TEST_F(ForeignGroups, WithoutAScheduleGoOnToo) {
  test::python_lines("train_groups.py", {dir_.path()});
  TrainConfig config = next("top5");
  RecordingLog log;
  const TrainResult result = train(config, {.log = &log});
  EXPECT_EQ(result.epochs, 2);
  EXPECT_EQ(result.best, result.test.value().metric("top1"));
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(
          "'metric' is another metric (top5): the best accuracy begins fresh"));
}

// timm's and torchvision's averages.
TEST_F(ForeignGroups, AnAverageGoesOnWithEma) {
  test::python_lines("train_groups.py", {dir_.path()});
  const std::string path = dir_ / "timm.pth.tar";
  const ckpt::Value root = ckpt::load(path).value().root;
  const ckpt::Value weights = *root.find("state_dict");
  ckpt::Dict wrapped;
  wrapped.items.emplace_back("n_averaged", 7);
  for (const ckpt::Item& item : weights.as_dict()->items) {
    wrapped.items.emplace_back(
        "module." + std::string(item.first.text()),
        item.second);
  }
  for (const std::string key : {"state_dict_ema", "model_ema"}) {
    ckpt::Value file = ckpt::load(path).value().root;
    file.set(key, key == "model_ema" ? ckpt::Value(wrapped) : weights);
    ckpt::save(dir_ / (key + ".pth.tar"), file).value();
    TrainConfig config = next(key);
    config.ema = 0.999999; // the average stays what it was
    RecordingLog log;
    train(config, {.log = &log});
    EXPECT_THAT(
        log.lines[LogLevel::kInfo],
        Contains(HasSubstr(format("'{}') goes on with --ema", key))));
    const ckpt::Value saved = checkpoint(key + "-run");
    EXPECT_GT(saved.find("ema_updates")->number(), key == "model_ema" ? 7 : 1);
    const StateDict before = to_state_dict(weights);
    const StateDict after = to_state_dict(*saved.find("state_dict_ema"));
    for (const auto& [name, tensor] : before.entries) {
      if (tensor.is_floating_point() && !name.ends_with("running_var") &&
          !name.ends_with("running_mean")) {
        EXPECT_TRUE(torch::allclose(tensor, after.get(name), 1e-3, 1e-3))
            << name;
      }
    }
  }
}

TEST_F(ForeignGroups, ABestThatIsNoNumberIsSaid) {
  test::python_lines("train_groups.py", {dir_.path()});
  const std::string path = dir_ / "top5.pth.tar";
  ckpt::Value root = ckpt::load(path).value().root;
  root.set("args", ckpt::Value::dict({}));
  const auto is_said = [&](const ckpt::Value& best) {
    root.set("metric", best);
    return std::ranges::count(
               to_run_checkpoint(root, path).notes,
               "'metric' is no finite number: the best accuracy begins "
               "fresh") == 1;
  };
  EXPECT_TRUE(is_said("high"));
  EXPECT_TRUE(is_said(std::nan("")));
  EXPECT_FALSE(is_said(ckpt::Value()));
  EXPECT_FALSE(is_said(51.5));
}

} // namespace
} // namespace lockstep::train
