// SPDX-License-Identifier: BSD-3-Clause
//
// What a checkpoint says of the data, and what a run that goes on makes of it.
#include "lockstep/train/checkpoints/trained_data.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/data/made_dataset.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainedData animals() {
  return {
      .sample_shape = {3, 32, 32},
      .target = {.kind = TargetKind::kClasses},
      .num_classes = 2,
      .class_names = {"cat", "\u732b"},
      .pixels =
          {.shape = {3, 28, 28},
           .mean = {0.1F, 0.2F, 0.3F},
           .std = {1.0F, 2.0F, 0.1F}},
      .task = "classification",
      .metric = "top1"};
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  return {.message = "no error"};
}

TEST(TrainedData, ComesBackAsItWas) {
  EXPECT_EQ(to_trained_data(to_value(animals())), animals());
  const TrainedData values{
      .sample_shape = {4},
      .target = {.kind = TargetKind::kValues, .shape = {3}},
      .task = "regression",
      .metric = "mae"};
  EXPECT_EQ(to_trained_data(to_value(values)), values);
  EXPECT_EQ(values.num_outputs(), 3);
  EXPECT_THAT(values.names(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(animals().names(), ElementsAre("cat", "\u732b"));
}

TEST(TrainedData, WhatIsNoneOfItIsNamed) {
  ckpt::Value saved = to_value(animals());
  saved.set("sample_shape", ckpt::Value(std::vector{3, 0}));
  EXPECT_THAT(
      error_of([&] { to_trained_data(saved); }).message,
      HasSubstr("data.sample_shape must be sizes above 0"));
  saved.set("sample_shape", "large");
  EXPECT_EQ(
      error_of([&] { to_trained_data(saved); }).code,
      ErrorCode::kMismatch);
  saved = to_value(animals());
  saved.set("target", "colours");
  EXPECT_THAT(
      error_of([&] { to_trained_data(saved); }).message,
      HasSubstr("unknown kind of targets 'colours'"));
}

TEST(TrainedData, OtherDataAreRefusedByWhatDiffers) {
  struct Row {
    std::function<void(TrainedData&)> change;
    std::string text;
  };
  const std::vector<Row> rows{
      {[](auto& data) { data.num_classes = 3; },
       "trained on 2 classes, the data have 3"},
      {[](auto& data) {
         data.class_names = {"cat", "dog"};
       },
       "class 1 of the checkpoint is '\u732b', that of the data is 'dog'"},
      {[](auto& data) {
         data.target.shape = {8, 8};
       },
       "trained on targets of classes [], the data have classes [8, 8]"},
      {[](auto& data) { data.target.kind = TargetKind::kValues; },
       "the data have values []"},
  };
  for (const Row& row : rows) {
    TrainedData now = animals();
    row.change(now);
    const Error error =
        error_of([&] { data_part(now).load(to_value(animals())); });
    EXPECT_EQ(error.detail, "E_OTHER_DATA") << error.message;
    EXPECT_THAT(error.message, HasSubstr(row.text));
  }
  TrainedData now = animals();
  now.class_names.clear(); // names that nobody knows contradict nothing
  now.sample_shape = {3, 16, 16};
  EXPECT_NO_THROW(data_part(now).load(to_value(animals())));
}

struct TwoNumbers : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

class TrainedDataRuns : public TrainerFixture {
 protected:
  TrainResult run(const std::string& resume, std::vector<std::string> names) {
    const at::Tensor x = at::ones({8, 2});
    const at::Tensor y = x.select(1, 0).to(at::kLong);
    TrainConfig config = small("run");
    config.batch_size = 4;
    config.epochs = resume.empty() ? 1 : 2;
    config.resume = resume;
    return Trainer(
               config,
               {.own =
                    {.model = std::make_shared<TwoNumbers>(),
                     .train_data = as_dataset(
                         make_dataset(x, y),
                         {.num_classes = 2, .class_names = std::move(names)})}})
        .run();
  }
};

TEST_F(TrainedDataRuns, CheckpointsSayWhatTheyWereTrainedOn) {
  run("", {"no", "yes"});
  const TrainedData data = to_trained_data(*checkpoint("run").find(kDataPart));
  EXPECT_THAT(data.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(data.sample_shape, ElementsAre(2));
  EXPECT_EQ(data.task, "classification");
  EXPECT_FALSE(data.pixels.is_known());
}

TEST_F(TrainedDataRuns, ARunGoesOnWithTheSameClassesOnly) {
  run("", {"no", "yes"});
  const Error error = error_of([&] { run(dir_ / "run", {"yes", "no"}); });
  EXPECT_EQ(error.detail, "E_OTHER_DATA");
  EXPECT_THAT(error.message, HasSubstr("'no', that of the data is 'yes'"));
  EXPECT_THAT(error.path, HasSubstr("checkpoint-"));
  EXPECT_EQ(run(dir_ / "run", {"no", "yes"}).epochs, 2);
}

} // namespace
} // namespace lockstep::train
