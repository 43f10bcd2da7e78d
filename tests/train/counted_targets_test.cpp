// SPDX-License-Identifier: BSD-3-Clause
//
// Targets that are not counted: ranks, parts of a batch and batches of a test
// do what one device does with all at once.
#include <new>

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/data/made_dataset.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// A convolution, or a perceptron, that has memory for so many samples.
struct CountedNetImpl : torch::nn::Module {
  CountedNetImpl(bool makes_masks, std::int64_t room) : most(room) {
    body = makes_masks ? torch::nn::AnyModule(torch::nn::Conv2d(1, 3, 1))
                       : torch::nn::AnyModule(torch::nn::Linear(36, 3));
    register_module("body", body.ptr());
  }
  at::Tensor forward(const at::Tensor& x) {
    if (is_training() && x.size(0) > most) {
      throw std::bad_alloc();
    }
    const bool has_masks = body.type_info() == typeid(torch::nn::Conv2dImpl);
    return body.forward(has_masks ? x : x.flatten(1));
  }
  std::int64_t most;
  torch::nn::AnyModule body;
};
TORCH_MODULE(CountedNet);

constexpr std::int64_t kSamples = 32;

at::Tensor images() {
  torch::manual_seed(2);
  return at::rand({kSamples, 1, 6, 6});
}

at::Tensor masks() {
  const at::Tensor pixels = images().squeeze(1);
  at::Tensor masks = pixels.mul(2.99).to(at::kLong);
  // Of every fourth sample nearly all is unknown, of others next to nothing.
  for (std::int64_t i = 0; i < kSamples; ++i) {
    masks[i].narrow(0, 0, i % 4 == 0 ? 5 : 0).fill_(255);
  }
  masks[3].fill_(255);
  return masks;
}

at::Tensor classes() {
  at::Tensor classes = at::arange(kSamples).remainder(3);
  for (std::int64_t i = 0; i < kSamples; i += 2) {
    classes[i] = i % 6 == 0 ? classes[i] : at::full({}, -100, at::kLong);
  }
  return classes;
}

/// Masks or classes, with class weights or without.
struct Kind {
  std::string name = {};
  bool has_masks = false;
  std::string class_weights = {};
};

class CountedTargets : public TrainerFixture,
                       public ::testing::WithParamInterface<Kind> {
 protected:
  TrainConfig config(const std::string& folder) {
    TrainConfig config = small(folder);
    config.batch_size = 8;
    config.epochs = 2;
    config.lr = 0.5;
    config.max_train_samples = config.max_eval_samples = 0;
    config.class_weights = GetParam().class_weights;
    return config;
  }
  static OwnParts parts(std::int64_t room = kSamples) {
    const bool has_masks = GetParam().has_masks;
    const auto data = as_dataset(
        make_dataset(images(), has_masks ? masks() : classes()),
        {.num_classes = 3});
    torch::manual_seed(3);
    return {
        .model = CountedNet(has_masks, room),
        .train_data = data,
        .test_data = data};
  }
  void train_ranks(
      const TrainConfig& config,
      const std::shared_ptr<Observer>& of_rank_0) {
    const std::vector<OwnParts> of_ranks{parts(), parts()};
    const auto errors =
        dist::run_thread_ranks(2, [&](const dist::ProcessGroup& group) {
          const auto rank = static_cast<std::size_t>(group.rank());
          Observers observers;
          if (rank == 0) {
            observers.push_back(of_rank_0);
          }
          Trainer(
              config,
              {.group = group, .observers = observers, .own = of_ranks[rank]})
              .run();
        });
    EXPECT_THAT(errors, Each(""));
  }
  void expect_near(const std::string& a, const std::string& b) {
    const ckpt::Value one = checkpoint(a);
    const ckpt::Value two = checkpoint(b);
    const StateDict weights = to_state_dict(*two.find("state_dict"));
    for (const auto& [name, tensor] :
         to_state_dict(*one.find("state_dict")).entries) {
      EXPECT_TRUE(torch::allclose(tensor, weights.get(name), 1e-5, 1e-6))
          << name;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    CountedTargets,
    ::testing::Values(
        Kind{"masks", true},
        Kind{"classes", false},
        Kind{"weighted_masks", true, "1,2,4"},
        Kind{"weighted_classes", false, "1,2,4"}),
    [](const auto& test) { return test.param.name; });

TEST_P(CountedTargets, RanksDoWhatOneDeviceDoes) {
  const auto one = std::make_shared<RecordingObserver>();
  train(config("one"), {.observers = {one}, .own = parts()});
  const auto two = std::make_shared<RecordingObserver>();
  train_ranks(config("two"), two);
  expect_near("one", "two");
  ASSERT_EQ(two->epochs.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const EpochRecord& wanted = one->epochs.at(i);
    const EpochRecord& found = two->epochs[i];
    EXPECT_NEAR(found.test.value().loss, wanted.test.value().loss, 1e-5);
    if (GetParam().class_weights.empty()) {
      EXPECT_NEAR(found.train.loss, wanted.train.loss, 1e-5);
    }
  }
}

TEST_P(CountedTargets, PartsOfABatchDoWhatTheWholeDoes) {
  TrainConfig whole = config("whole");
  whole.auto_batch = true;
  const auto seen = std::make_shared<RecordingObserver>();
  train(whole, {.observers = {seen}, .own = parts()});
  whole.output = dir_ / "parts";
  const auto again = std::make_shared<RecordingObserver>();
  train(whole, {.observers = {again}, .own = parts(/*room=*/2)});
  expect_near("whole", "parts");
  if (!whole.class_weights.empty()) {
    return; // what is told is no weighted mean, as in Python's scripts
  }
  const std::vector<float> losses = again->losses();
  ASSERT_EQ(losses.size(), seen->losses().size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], seen->losses()[i], 1e-5) << "step " << i;
  }
}

TEST_P(CountedTargets, ATestIsTheMeanOverAllThatIsCounted) {
  TrainConfig wanted = config("run");
  wanted.output = "";
  wanted.test_only = true;
  OwnParts own = parts();
  const at::NoGradGuard no_grad;
  auto& net = dynamic_cast<CountedNetImpl&>(own.model.module());
  const bool has_masks = GetParam().has_masks;
  const auto expected = at::cross_entropy_loss(
                            net.forward(images()),
                            has_masks ? masks() : classes(),
                            /*weight=*/{},
                            at::Reduction::Mean,
                            has_masks ? 255 : -100)
                            .item<double>();
  for (const std::int64_t size : {1, 5, 32}) {
    wanted.val_batch_size = size;
    EXPECT_NEAR(train(wanted, {.own = own}).test->loss, expected, 1e-6)
        << "batches of " << size;
  }
}

TEST_P(CountedTargets, AnEpochGoesOnWithItsLoss) {
  TrainConfig wanted = config("straight");
  const auto straight = std::make_shared<RecordingObserver>();
  train(wanted, {.observers = {straight}, .own = parts()});
  wanted.output = dir_ / "run";
  int steps = 0;
  train(wanted, {.should_stop = [&] { return ++steps == 2; }, .own = parts()});
  const ckpt::Value saved = checkpoint("run");
  EXPECT_LT(saved.find("cursor")->find("loss_weight")->number(), 16.0);
  wanted.resume = wanted.output;
  wanted.resume_exact = true;
  const auto rest = std::make_shared<RecordingObserver>();
  train(wanted, {.observers = {rest}, .own = parts()});
  ASSERT_EQ(rest->epochs.size(), 2U);
  EXPECT_EQ(rest->epochs[0].train.loss, straight->epochs[0].train.loss);
}

class Divisors : public TrainerFixture {};

TEST_F(Divisors, AreWhatIsCounted) {
  EXPECT_EQ(segmentation(3).divisor(at::zeros({4, 5, 7}, at::kLong)), 4.0)
      << "exactly the samples";
  at::Tensor half = at::zeros({4, 2, 2}, at::kLong);
  half.select(1, 0).fill_(255);
  EXPECT_EQ(segmentation(3).divisor(half), 2.0);
  EXPECT_EQ(
      segmentation(3, 255, {1, 2, 4}).counted(half),
      segmentation(3).divisor(half));
  const at::Tensor mask = at::arange(4).reshape({1, 2, 2});
  EXPECT_EQ(segmentation(4, 0, {1, 2, 4, 8}).divisor(mask), 14.0)
      << "without the class that is ignored";
  EXPECT_EQ(classification().divisor(at::arange(6)), 6.0);
  EXPECT_EQ(classification().divisor(at::arange(6) - 100), 5.0);
}

TEST_F(Divisors, AreNotSavedWhereAllIsCounted) {
  TrainConfig wanted = uneven("run");
  int steps = 0;
  train(wanted, {.should_stop = [&] { return ++steps == 2; }});
  const ckpt::Value saved = checkpoint("run");
  EXPECT_NE(saved.find("cursor")->find("loss_sum"), nullptr);
  EXPECT_EQ(saved.find("cursor")->find("loss_weight"), nullptr);
}

TEST_F(Divisors, LabelsOfMasksAreSmoothed) {
  const auto data =
      as_dataset(make_dataset(images(), masks()), {.num_classes = 3});
  const Task task = task_for(*data, "auto", "auto", 0.1);
  const at::Tensor outputs = at::rand({kSamples, 3, 6, 6});
  EXPECT_TRUE(task.loss(outputs, masks())
                  .equal(at::cross_entropy_loss(
                      outputs,
                      masks(),
                      /*weight=*/{},
                      at::Reduction::Mean,
                      255,
                      0.1)));
  EXPECT_TRUE(task.test_loss(outputs, masks())
                  .equal(segmentation(3).loss(outputs, masks())));
}

TEST_F(Divisors, SmoothingOfValuesIsTold) {
  const auto data =
      as_dataset(make_dataset(at::rand({8, 3}), at::rand({8, 1})));
  for (const bool is_own : {false, true}) {
    TrainConfig wanted = small(is_own ? "own" : "run");
    wanted.label_smoothing = 0.1;
    wanted.batch_size = 4;
    wanted.epochs = 1;
    RecordingLog log;
    OwnParts own{.train_data = data};
    if (is_own) {
      own.task = regression();
    }
    train(wanted, {.log = &log, .own = own});
    const auto& warnings = log.lines[LogLevel::kWarning];
    const auto told = HasSubstr(
        "--label-smoothing has no effect on the task regression: it has no "
        "classes");
    if (is_own) {
      EXPECT_THAT(warnings, Not(Contains(told)));
      EXPECT_THAT(
          warnings,
          Contains(HasSubstr("--label-smoothing has no effect on a loss")));
    } else {
      EXPECT_THAT(warnings, Contains(told));
    }
  }
}

} // namespace
} // namespace lockstep::train
