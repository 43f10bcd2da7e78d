// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that do not fit into memory go again in parts.
#include "lockstep/train/loop/micro_batches.h"

#include <new>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/step/memory_use.h"
#include "tests/sim/support.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A perceptron that has memory for so many samples at once.
struct SmallMemoryImpl : torch::nn::Module {
  explicit SmallMemoryImpl(std::int64_t room) : most(room) {
    first = register_module("first", torch::nn::Linear(784, 32));
    norm = register_module("norm", torch::nn::Dropout(0.0));
    second = register_module("second", torch::nn::Linear(32, 10));
  }
  at::Tensor forward(const at::Tensor& x) {
    sizes.push_back(x.size(0));
    if (is_training() && x.size(0) > most) {
      throw std::bad_alloc();
    }
    return second->forward(
        norm->forward(torch::relu(first->forward(x.flatten(1)))));
  }
  std::int64_t most;
  std::vector<std::int64_t> sizes = {};
  torch::nn::Linear first = nullptr;
  torch::nn::Dropout norm = nullptr;
  torch::nn::Linear second = nullptr;
};
TORCH_MODULE(SmallMemory);

class MicroBatchesTest : public TrainerFixture {
 protected:
  TrainConfig wanted(const std::string& folder) {
    TrainConfig config = uneven(folder);
    config.auto_batch = true;
    config.epochs = 2;
    return config;
  }
  std::vector<std::int64_t> train_with(
      const TrainConfig& config,
      std::int64_t most,
      LogSink* log = nullptr) {
    torch::manual_seed(3);
    SmallMemory net(most);
    OwnParts own = named_parts(config);
    own.model = net;
    own.model_name = "";
    Trainer(config, {.log = log, .own = own}).run();
    return net->sizes;
  }
  StateDict weights(const std::string& folder) {
    const ckpt::Value saved = checkpoint(folder);
    return to_state_dict(*saved.find("state_dict"));
  }
  void expect_near(const std::string& a, const std::string& b) {
    const StateDict one = weights(a);
    const StateDict two = weights(b);
    for (const auto& [name, tensor] : one.entries) {
      EXPECT_TRUE(torch::allclose(tensor, two.get(name), 1e-4, 1e-6)) << name;
    }
  }
};

TEST_F(MicroBatchesTest, PartsHaveTheGradientsOfTheWhole) {
  train_with(wanted("whole"), 1000);
  RecordingLog log;
  const auto sizes = train_with(wanted("parts"), 20, &log);
  EXPECT_THAT(sizes, AllOf(Contains(64), Contains(32), Contains(16)));
  EXPECT_EQ(std::ranges::count(sizes, 64), 1 + 2 * 2) << "and in tests";
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("step 1 did not fit into memory: batches go in 4")));
  expect_near("whole", "parts");
}

TEST_F(MicroBatchesTest, WithAccumulationAndWeightsToo) {
  TrainConfig whole = wanted("whole");
  whole.accumulate = 2;
  whole.class_weights = "balanced";
  whole.clip_grad = 0.5;
  train_with(whole, 1000);
  TrainConfig parts = whole;
  parts.output = dir_ / "parts";
  train_with(parts, 40);
  expect_near("whole", "parts");
}

TEST_F(MicroBatchesTest, ARunGoesOnInAsManyParts) {
  TrainConfig config = wanted("run");
  config.epochs = 1;
  train_with(config, 20);
  const ckpt::Value saved = checkpoint("run");
  EXPECT_EQ(saved.find("micro_batches")->number(), 4.0);
  config.epochs = 2;
  config.resume = config.output;
  config.resume_exact = true;
  const auto sizes = train_with(config, 20);
  EXPECT_EQ(sizes.front(), 16);
}

TEST_F(MicroBatchesTest, OtherErrorsAndSingleSamplesEndTheRun) {
  EXPECT_THROW(train_with(wanted("run"), 0), std::bad_alloc);
  TrainConfig off = wanted("off");
  off.auto_batch = false;
  EXPECT_THROW(train_with(off, 20), std::bad_alloc);
  EXPECT_FALSE(
      is_out_of_memory(std::make_exception_ptr(std::runtime_error("another"))));
}

// A rank that has no room does not leave the other one waiting.
TEST_F(MicroBatchesTest, RanksRepeatAStepTogether) {
  const auto train_ranks = [&](const TrainConfig& config, std::int64_t most) {
    std::vector<SmallMemory> nets;
    for (const std::int64_t room : {std::int64_t{1000}, most}) {
      torch::manual_seed(3);
      nets.emplace_back(room);
    }
    const OwnParts parts = named_parts(config);
    const auto errors =
        dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          OwnParts own = parts;
          own.model = nets[static_cast<std::size_t>(group.rank())];
          own.model_name = "";
          Trainer(config, {.group = group, .own = own}).run();
        });
    EXPECT_THAT(errors, ::testing::Each(::testing::IsEmpty()));
    return nets[0]->sizes;
  };
  TrainConfig whole = wanted("whole");
  whole.accumulate = 2;
  whole.class_weights = "balanced";
  whole.clip_grad = 0.5;
  train_ranks(whole, 1000);
  TrainConfig parts = whole;
  parts.output = dir_ / "parts";
  const auto sizes = train_ranks(parts, 12);
  EXPECT_THAT(sizes, AllOf(Contains(32), Contains(16), Contains(8)));
  expect_near("whole", "parts");
  const ckpt::Value saved = checkpoint("parts");
  EXPECT_EQ(saved.find("micro_batches")->number(), 4.0);
  TrainConfig plain = whole;
  plain.output = dir_ / "plain";
  plain.auto_batch = false;
  train_ranks(plain, 1000);
  expect_near("plain", "whole");
}

TEST_F(MicroBatchesTest, ARankThatEndsTellsTheOthers) {
  const TrainConfig config = wanted("run");
  const OwnParts parts = named_parts(config);
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        OwnParts own = parts;
        own.model = SmallMemory(group.rank() == 0 ? 1000 : 0);
        own.model_name = "";
        Trainer(config, {.group = group, .own = own}).run();
      });
  EXPECT_THAT(
      errors,
      ::testing::ElementsAre(
          HasSubstr("another rank could not make this step"),
          HasSubstr("bad_alloc")));
}

TEST_F(MicroBatchesTest, RanksWithSyncedNormsCannot) {
  const TrainConfig config = wanted("run");
  const OwnParts parts = named_parts(config);
  const auto errors =
      dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
        struct Normed : torch::nn::Module {
          at::Tensor forward(const at::Tensor& x) {
            return last->forward(norm->forward(x.flatten(1)));
          }
          torch::nn::BatchNorm1d norm =
              register_module("norm", torch::nn::BatchNorm1d(784));
          torch::nn::Linear last =
              register_module("last", torch::nn::Linear(784, 10));
        };
        const auto net = std::make_shared<Normed>();
        convert_sync_batchnorm(*net, group);
        OwnParts own = parts;
        own.model = net;
        own.model_name = "";
        Trainer(config, {.group = group, .own = own}).run();
      });
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("convert_sync_batchnorm")));
}

// Devices that have `room` bytes beside the weights; 0: any number.
struct LittleMemory : StepHook {
  explicit LittleMemory(std::uint64_t bytes) : room(bytes) {}
  [[nodiscard]] std::string text() const override {
    return "memory is limited";
  }
  [[nodiscard]] bool decides_bits() const override {
    return false;
  }
  void begin_epoch(const StepScope& scope) override {
    for (const int device : {0, 1}) {
      const std::uint64_t used = sim_counters(device).used_bytes;
      if (scope.epoch == 1 && room > 0) {
        set_sim_memory_limit(device, used + room);
      }
    }
  }
  std::uint64_t room;
};

class LimitedDevices : public MicroBatchesTest,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    parse_devices("sim*3"); // as many as other tests of this program want
  }
  void TearDown() override {
    set_sim_memory_limit(0, 0);
    set_sim_memory_limit(1, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Trainer,
    LimitedDevices,
    ::testing::Values("sim*1", "sim*2"),
    [](const auto& param) { return test::name_of_devices(param.param); });

TEST_P(LimitedDevices, TrainInPartsWhatDoesNotFit) {
  const auto run = [&](const std::string& folder,
                       const std::shared_ptr<LittleMemory>& memory) {
    TrainConfig config = wanted(folder);
    config.devices = GetParam();
    config.batch_size = 2400; // more than the weights
    config.max_train_samples = 2400;
    config.max_eval_samples = 16; // a test does not go in parts
    RecordingLog log;
    train(config, {.log = &log, .hooks = {memory}});
    return log.lines[LogLevel::kWarning];
  };
  const auto any = std::make_shared<LittleMemory>(0);
  EXPECT_THAT(run("whole", any), ::testing::Each(Not(HasSubstr("memory"))));
  // Images take as much as what the passes keep; gradients and momenta, 2 MiB.
  const std::uint64_t images =
      2400 * 784 * sizeof(float) / parse_devices(GetParam()).size();
  const auto little =
      std::make_shared<LittleMemory>(images / 2 * 3 + (2U << 20U));
  EXPECT_THAT(
      run("parts", little),
      Contains(HasSubstr("did not fit into memory: batches go in 2 parts")));
  expect_near("whole", "parts");
}

} // namespace
} // namespace lockstep::train
