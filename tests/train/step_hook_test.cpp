// SPDX-License-Identifier: BSD-3-Clause
//
// What happens around the update of a step, against Python's own ways:
// tests/oracle/train_hooks.py.
#include <cstdlib>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "tests/support/python.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Each;

constexpr const char* kImages = "/usr/share/datasets/fashion-mnist";

/// One row of what is tried.
struct Case {
  std::string name = {};
  void (*set)(TrainConfig& config) = nullptr;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {"ClipGrad", [](TrainConfig& config) { config.clip_grad = 0.5; }},
      {"ClipValue", [](TrainConfig& config) { config.clip_value = 0.01; }},
      {"ClipBoth",
       [](TrainConfig& config) {
         config.clip_grad = 0.3;
         config.clip_value = 0.02;
       }},
      {"Accumulate", [](TrainConfig& config) { config.accumulate = 3; }},
      {"Ema", [](TrainConfig& config) { config.ema = 0.9; }},
      {"EmaClipAccumulate",
       [](TrainConfig& config) {
         config.ema = 0.99;
         config.clip_grad = 1.0;
         config.accumulate = 2;
       }},
      {"WarmupCosine",
       [](TrainConfig& config) {
         config.warmup_epochs = 2;
         config.lr_scheduler = "cosineannealinglr";
         config.min_lr = 0.001;
       }},
      {"WarmupSteps",
       [](TrainConfig& config) {
         config.warmup_epochs = 1;
         config.lr_step_size = 1;
       }},
      {"Plateau",
       [](TrainConfig& config) {
         config.lr_scheduler = "reducelronplateau";
         config.lr = 1e-5; // gets better by less than counts
         config.lr_patience = 0;
         config.min_lr = 2e-6;
       }},
      {"Freeze", [](TrainConfig& config) { config.freeze = "layers.1"; }},
      {"WarmupOfSteps",
       [](TrainConfig& config) {
         config.warmup_steps = 11; // ends in the third epoch
         config.lr_scheduler = "cosineannealinglr";
         config.min_lr = 1e-5;
       }},
      {"WarmupOfStepsPlateau",
       [](TrainConfig& config) {
         config.warmup_steps = 7;
         config.lr_scheduler = "reducelronplateau";
         config.lr_patience = 0;
       }},
      {"ClassWeights",
       [](TrainConfig& config) { config.class_weights = "balanced"; }},
      {"ClassWeightsGiven",
       [](TrainConfig& config) {
         config.class_weights = "1,2,0.5,1,1,3,1,0.25,1,1";
         config.accumulate = 2;
       }},
      {"Sampler", [](TrainConfig& config) { config.sampler = "balanced"; }},
      {"LayerDecay",
       [](TrainConfig& config) {
         config.layer_decay = 0.5;
         config.no_decay_norms = true;
         config.lr_step_size = 2;
       }},
      {"NoDecayOneCycle",
       [](TrainConfig& config) {
         config.no_decay_norms = true;
         config.layer_decay = 0.7;
         config.lr_scheduler = "onecyclelr";
       }},
      {"NoDecay", [](TrainConfig& config) { config.no_decay_norms = true; }},
      {"ParamGroups",
       [](TrainConfig& config) {
         config.param_groups = R"([{match: "layers.1.*", lr_scale: 0.1},)"
                               R"( {match: "*bias", weight_decay: 0}])";
         config.lr_scheduler = "cosineannealinglr";
       }},
      {"Swa",
       [](TrainConfig& config) {
         config.swa_start = 2;
         config.swa_lr = config.lr / 3;
       }},
      {"SwaAtTheRatesOfTheSchedule",
       [](TrainConfig& config) {
         config.swa_start = 2;
         config.lr_step_size = 1;
         config.lr_gamma = 0.9;
       }},
      {"Fp16", [](TrainConfig& config) { config.amp = "fp16"; }},
      {"Fp16ClipAccumulateEma",
       [](TrainConfig& config) {
         config.amp = "fp16";
         config.clip_grad = 0.5;
         config.accumulate = 2;
         config.ema = 0.9;
       }},
  };
  return kCases;
}

// The rules of `cases`, as Python takes them.
nlohmann::json rules_of(const TrainConfig& config) {
  return config.param_groups.empty()
             ? nlohmann::json::array()
             : nlohmann::json{
                   {{"match", "layers.1.*"}, {"lr_scale", 0.1}},
                   {{"match", "*bias"}, {"weight_decay", 0}}};
}

class StepHookTest : public TrainerFixture {
 protected:
  TrainConfig config(const std::string& folder) {
    TrainConfig config = uneven(folder);
    config.data_dir = kImages;
    return config;
  }
  /// Trains without a test: the number that a plateau sees is the training's.
  std::vector<float> our_losses(TrainConfig config) {
    auto seen = std::make_shared<RecordingObserver>();
    OwnParts own = named_parts(config);
    own.test_data = nullptr;
    Trainer(config, {.observers = {seen}, .own = own}).run();
    return seen->losses();
  }
  void expect_as_in_python(const TrainConfig& config) {
    const std::vector<float> ours = our_losses(config);
    const nlohmann::json settings{
        {"model", config.model},
        {"opt", config.opt},
        {"lr", config.lr},
        {"momentum", config.momentum},
        {"weight_decay", config.weight_decay},
        {"lr_scheduler", config.lr_scheduler},
        {"lr_step_size", config.lr_step_size},
        {"lr_gamma", config.lr_gamma},
        {"lr_patience", config.lr_patience},
        {"min_lr", config.min_lr},
        {"warmup_epochs", config.warmup_epochs},
        {"epochs", config.epochs},
        {"batch_size", config.batch_size},
        {"max_train_samples", config.max_train_samples},
        {"seed", config.seed},
        {"threads", config.threads},
        {"clip_grad", config.clip_grad},
        {"clip_value", config.clip_value},
        {"accumulate", config.accumulate},
        {"ema", config.ema},
        {"freeze", config.freeze},
        {"unfreeze_at", config.unfreeze_at},
        {"warmup_steps", config.warmup_steps},
        {"class_weights", config.class_weights},
        {"sampler", config.sampler},
        {"layer_decay", config.layer_decay},
        {"no_decay_norms", config.no_decay_norms},
        {"rules", rules_of(config)},
        {"swa_start", config.swa_start},
        {"swa_lr", config.swa_lr},
        {"amp", config.amp}};
    auto lines = split(
        test::run_python(
            "train_hooks.py",
            {settings.dump(), kImages, config.output + "/checkpoint.pth.tar"}),
        '\n');
    ASSERT_GE(lines.size(), 2U);
    lines.pop_back();
    EXPECT_EQ(lines.back(), "equal");
    lines.pop_back();
    std::vector<float> losses;
    losses.reserve(lines.size());
    for (const std::string& line : lines) {
      losses.push_back(std::strtof(line.c_str(), nullptr));
    }
    EXPECT_EQ(ours, losses);
  }
  void expect_equal_files(const std::string& a, const std::string& b) {
    for (const std::string name :
         {"checkpoint.pth.tar", "model_best.pth.tar", "steps.csv"}) {
      EXPECT_EQ(get(a, name) == get(b, name), true) << name << " of " << b;
    }
  }
};

class EachHook : public StepHookTest,
                 public ::testing::WithParamInterface<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Settings,
    EachHook,
    ::testing::ValuesIn(cases()),
    [](const auto& test) { return test.param.name; });

TEST_P(EachHook, DoesWhatPythonDoesFor100Steps) {
  for (const std::string opt : {"sgd", "adamw"}) {
    SCOPED_TRACE(opt);
    TrainConfig wanted = config("run-" + opt);
    wanted.epochs = 20;
    wanted.opt = opt;
    wanted.lr = opt == "sgd" ? 0.1 : 0.001;
    GetParam().set(wanted);
    expect_as_in_python(wanted);
  }
}

TEST_P(EachHook, GoesOnWithTheSameBits) {
  for (const std::string devices : {"cpu", "cpu*2"}) {
    TrainConfig wanted = config("straight-" + devices);
    GetParam().set(wanted);
    wanted.devices = devices;
    wanted.epochs = 3;
    train(wanted);
    for (const int stop : {1, 3}) {
      const std::string folder = format("stopped-{}-{}", devices, stop);
      wanted.output = dir_ / folder;
      wanted.resume = "auto";
      wanted.resume_exact = false;
      int steps = 0;
      train(wanted, {.should_stop = [&] { return ++steps >= stop; }});
      wanted.resume_exact = true;
      train(wanted);
      wanted.resume = "";
      expect_equal_files("straight-" + devices, folder);
    }
  }
}

TEST_P(EachHook, TwoRanksTrainAsOne) {
  TrainConfig wanted = config("one");
  GetParam().set(wanted);
  wanted.epochs = 3;
  wanted.max_train_samples = 256;
  train(wanted);
  TrainConfig both = wanted;
  both.output = dir_ / "two";
  // Made one after the other: they draw from one generator.
  const std::vector<OwnParts> of_ranks{named_parts(both), named_parts(both)};
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        const auto rank = static_cast<std::size_t>(group.rank());
        Trainer(both, {.group = group, .own = of_ranks[rank]}).run();
      });
  EXPECT_THAT(errors, Each(""));
  // Sums in another order.
  const auto weights = [&](const std::string& folder) {
    const ckpt::Value saved = checkpoint(folder);
    return to_state_dict(*saved.find("state_dict"));
  };
  const StateDict one = weights("one");
  const StateDict two = weights("two");
  const double slack = GetParam().name.starts_with("Fp16") ? 3e-2 : 1e-4;
  for (const auto& [name, tensor] : one.entries) {
    EXPECT_TRUE(torch::allclose(tensor, two.get(name), 1e-3, slack)) << name;
  }
}

// Simulated devices, in a process of their own.
class EachHookOnSim : public EachHook {};
INSTANTIATE_TEST_SUITE_P(
    Settings,
    EachHookOnSim,
    ::testing::ValuesIn(cases()),
    [](const auto& test) { return "sim" + test.param.name; });

TEST_P(EachHookOnSim, DoesWhatReplicasOfTheCpuDo) {
  parse_devices("sim*3"); // as many as other tests of this program want
  const auto weights = [&](const std::string& devices) {
    TrainConfig wanted = config(devices);
    GetParam().set(wanted);
    wanted.devices = devices;
    wanted.epochs = 3;
    train(wanted);
    const ckpt::Value saved = checkpoint(devices);
    return to_state_dict(*saved.find("state_dict"));
  };
  const StateDict ours = weights("cpu*2");
  const StateDict theirs = weights("sim*2");
  // Devices of other makers have other operations in float16 than the CPU.
  const bool is_half = GetParam().name.starts_with("Fp16");
  for (const auto& [name, tensor] : ours.entries) {
    const at::Tensor other = theirs.get(name);
    if (is_half && tensor.is_floating_point()) {
      const auto apart = (tensor - other).norm().item<double>();
      EXPECT_LT(apart, 0.1 * tensor.norm().item<double>() + 1e-3) << name;
    } else {
      EXPECT_TRUE(torch::allclose(tensor, other, 1e-4, 1e-5)) << name;
    }
  }
}

TEST_F(StepHookTest, FrozenBatchNormsKeepTheirStatistics) {
  TrainConfig wanted = config("run");
  wanted.model = "resnet18";
  wanted.freeze = "conv1,bn1,layer1";
  wanted.max_train_samples = 160;
  wanted.epochs = 2;
  expect_as_in_python(wanted);
  wanted = config("later");
  wanted.model = "resnet18";
  wanted.freeze = "conv1,bn1,layer1,layer2.0";
  wanted.unfreeze_at = 2;
  wanted.max_train_samples = 160;
  wanted.epochs = 2;
  expect_as_in_python(wanted);
}

TEST_F(StepHookTest, LayersOfAResNetAreTimms) {
  TrainConfig wanted = config("run");
  wanted.model = "resnet18";
  wanted.layer_decay = 0.75;
  wanted.no_decay_norms = true;
  wanted.max_train_samples = 160;
  wanted.epochs = 2;
  expect_as_in_python(wanted);
}

TEST_F(StepHookTest, TheMeanHasTheBuffersOfItsEpochs) {
  TrainConfig wanted = uneven("run");
  wanted.model = "resnet18";
  wanted.max_train_samples = 160;
  wanted.epochs = 3;
  wanted.swa_start = 2;
  wanted.swa_lr = 0.01;
  wanted.data_dir = kImages;
  expect_as_in_python(wanted);
}

TEST_F(StepHookTest, WhatIsUnfrozenIsTrainedOnReplicas) {
  TrainConfig wanted = config("run");
  wanted.devices = "cpu*2";
  wanted.freeze = "layers.1";
  wanted.unfreeze_at = 2;
  wanted.epochs = 1;
  const auto first_layer = [&] {
    return to_state_dict(*checkpoint("run").find("state_dict"))
        .get("layers.1.weight")
        .clone();
  };
  train(wanted);
  const at::Tensor before = first_layer();
  wanted.epochs = 2;
  wanted.resume = wanted.output;
  train(wanted);
  EXPECT_FALSE(first_layer().equal(before));
}

} // namespace
} // namespace lockstep::train
