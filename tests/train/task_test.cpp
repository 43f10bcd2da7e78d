// SPDX-License-Identifier: BSD-3-Clause
//
// Runs of other tasks than classification, on data of a program's own.
#include <algorithm>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/train/step/class_details.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Outputs of the shape that targets have.
struct Line : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(3, 2));
};

struct Pixels : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return conv->forward(x);
  }
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(1, 2, /*kernel_size=*/1));
};

std::shared_ptr<Dataset> line_data() {
  torch::manual_seed(1);
  const at::Tensor x = at::rand({64, 3});
  return as_dataset(
      make_dataset(x, at::stack({x.sum(1), x.select(1, 0) * 2}, 1)));
}

/// Bright pixels are class 1; a column is not counted.
std::shared_ptr<Dataset> mask_data() {
  torch::manual_seed(2);
  const at::Tensor images = at::rand({32, 1, 6, 5});
  at::Tensor masks = images.squeeze(1).gt(0.5).to(at::kLong);
  masks.select(2, 0).fill_(255);
  return as_dataset(make_dataset(images, masks), {.num_classes = 2});
}

class TaskTest : public TrainerFixture {
 protected:
  TrainConfig config(const std::string& folder, double lr = 0.1) {
    TrainConfig config = small(folder);
    config.max_train_samples = 0;
    config.max_eval_samples = 0;
    config.batch_size = 8;
    config.epochs = 4;
    config.lr = lr;
    config.weight_decay = 0;
    return config;
  }
  template <class M>
  static OwnParts parts(const std::shared_ptr<Dataset>& data) {
    torch::manual_seed(3);
    return {
        .model = std::make_shared<M>(),
        .train_data = data,
        .test_data = data};
  }
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

TEST_F(TaskTest, ValuesAreARegression) {
  const TrainResult result =
      train(config("run"), {.own = parts<Line>(line_data())});
  EXPECT_EQ(result.best_by, (BestBy{"val_mae", Better::kLower}));
  EXPECT_LT(result.best, 0.2);
  EXPECT_GT(result.test->metric("r2"), 0.9);
  EXPECT_THAT(
      get("run", "results.csv"),
      StartsWith("epoch,step,samples,train_loss,train_mae,val_loss,val_mae,"
                 "val_mse,val_rmse,val_r2,lr,"));
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("task: \"regression\""));
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("metric: \"mae\""));
  EXPECT_THAT(get("run", "metrics.jsonl"), HasSubstr(R"("best_by":"val_mae")"));
  EXPECT_THAT(get("run", "results.svg"), HasSubstr("mae"));
  EXPECT_EQ(
      (*checkpoint("run", "model_best.pth.tar").find("best_val_mae")).number(),
      result.best);
}

TEST_F(TaskTest, MasksAreASegmentation) {
  const TrainResult result =
      train(config("run", 5.0), {.own = parts<Pixels>(mask_data())});
  EXPECT_EQ(result.best_by, (BestBy{"val_miou", Better::kHigher}));
  EXPECT_GT(result.best, 0.8);
  EXPECT_GT(result.test->metric("pixel_acc"), 0.9);
}

TEST_F(TaskTest, EveryReplicaAndAResumedRunMeasureTheSame) {
  TrainConfig straight = config("straight", 5.0);
  straight.devices = "cpu*2";
  const TrainResult whole =
      train(straight, {.own = parts<Pixels>(mask_data())});
  TrainConfig first = config("run", 5.0);
  first.devices = "cpu*2";
  first.checkpoint_interval = 1;
  std::int64_t steps = 0;
  train(
      first,
      {.should_stop = [&] { return ++steps == 6; },
       .own = parts<Pixels>(mask_data())});
  first.resume = dir_ / "run";
  first.resume_exact = true;
  const TrainResult resumed = train(first, {.own = parts<Pixels>(mask_data())});
  EXPECT_EQ(resumed.best, whole.best);
  const auto without_times = [&](const std::string& folder) {
    std::vector<std::string> kept;
    for (const std::string& line : split(get(folder, "results.csv"), '\n')) {
      kept.push_back(line.substr(0, line.find(",5.0,"))); // up to the rate
    }
    return kept;
  };
  EXPECT_EQ(without_times("run"), without_times("straight"));
}

TEST_F(TaskTest, TheMetricThatIsNamedChooses) {
  TrainConfig named = config("run", 5.0);
  named.metric = "dice";
  EXPECT_EQ(
      train(named, {.own = parts<Pixels>(mask_data())}).best_by.column,
      "val_dice");
  named = config("by_loss", 5.0);
  named.metric = "loss";
  EXPECT_EQ(
      train(named, {.own = parts<Pixels>(mask_data())}).best_by,
      (BestBy{"val_loss", Better::kLower}));
  named.metric = "mious";
  const Error error = refused(named, parts<Pixels>(mask_data()));
  EXPECT_THAT(error.hint + error.message, HasSubstr("miou"));
}

TEST_F(TaskTest, AMetricThatComesLaterGetsAColumn) {
  TrainConfig grown = config("run", 5.0);
  grown.epochs = 1;
  train(grown, {.own = parts<Pixels>(mask_data())});
  const std::string before = get("run", "results.csv");
  grown.epochs = 2;
  grown.resume = dir_ / "run";
  OwnParts own = parts<Pixels>(mask_data());
  own.task = segmentation(2);
  own.task.metrics.push_back(confusion(2, {.ignore_index = 255}));
  train(grown, {.own = own});
  const auto lines = split(get("run", "results.csv"), '\n');
  EXPECT_THAT(lines[0], StartsWith(split(before, '\n')[0] + ",val_"));
  EXPECT_THAT(lines[1], StartsWith(split(before, '\n')[1] + ","));
  EXPECT_EQ(
      std::ranges::count(lines[0], ','),
      std::ranges::count(lines[1], ','));
  EXPECT_EQ(
      std::ranges::count(lines[0], ','),
      std::ranges::count(lines[2], ','));
}

TEST_F(TaskTest, MasksOfNothingCountNothing) {
  const Task task = segmentation(2);
  const at::Tensor outputs = at::rand({2, 2, 3, 3}).requires_grad_();
  const at::Tensor none = at::full({2, 3, 3}, 255, at::kLong);
  const at::Tensor loss = task.loss(outputs, none);
  EXPECT_EQ(loss.item<float>(), 0.0F);
  loss.backward();
  EXPECT_TRUE(outputs.grad().eq(0).all().item<bool>());
  at::Tensor some = none.clone();
  some[0][1][1] = 1;
  EXPECT_TRUE(
      task.loss(outputs, some).equal(cross_entropy(0.0, 255)(outputs, some)));
}

TEST_F(TaskTest, SeveralValuesHaveTheMeanOfTheirR2) {
  const auto data = line_data();
  const Task task = task_for(*data);
  const at::Tensor targets =
      at::stack({at::arange(4) / 100.0, at::arange(4) + 300.0}, 1);
  const at::Tensor means = targets.mean(0, /*keepdim=*/true).expand({4, 2});
  Scoring scoring(task.metrics);
  scoring.add(
      StepResult(measure(at::zeros({}), means, targets, task.metrics), 4)
          .read());
  EXPECT_NEAR(scoring.score(task.metrics, 0).metric("r2").value(), 0, 1e-6);
}

TEST_F(TaskTest, RowsOfNumbersAreForAPerceptron) {
  TrainConfig rows = config("run", 0.01);
  OwnParts own;
  own.train_data = own.test_data = line_data();
  EXPECT_GT(train(rows, {.own = own}).best, 0.0);
  const ckpt::Value root = checkpoint("run");
  const ckpt::Value* const first =
      root.find("state_dict")->find("layers.1.weight");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->as_tensor()->sizes.back(), 3);
  rows = config("other");
  rows.model = "resnet18";
  EXPECT_THAT(
      refused(rows, own).message,
      HasSubstr("takes images of 3 dimensions"));
}

// Not counted is 255, where that is no class.
TEST_F(TaskTest, Class255OfManyIsTrainedAndMeasured) {
  at::Tensor masks = at::full({2, 1, 2}, 255, at::kLong);
  masks.select(2, 1).fill_(-100);
  const auto data = as_dataset(
      make_dataset(at::rand({2, 1, 1, 2}), masks),
      {.num_classes = 300});
  const at::Tensor outputs = at::rand({2, 300, 1, 2});
  for (const Task& task : {segmentation(300), task_for(*data)}) {
    EXPECT_TRUE(task.loss(outputs, masks)
                    .equal(cross_entropy(0.0, -100)(outputs, masks)));
    EXPECT_GT(task.loss(outputs, masks).item<float>(), 0.0F);
    EXPECT_EQ(task.divisor(masks), 1.0);
    EXPECT_EQ(task.counted(masks), 1.0);
    Metrics metrics = class_details(task, *data);
    ASSERT_EQ(metrics.size(), 1U);
    metrics.push_back(task.metrics.front());
    for (const auto& metric : metrics) {
      const at::Tensor sums = metric->sums(outputs, masks);
      EXPECT_EQ(sums[-1].item<double>(), 0.0) << "outside of the classes";
      EXPECT_GT(sums.sum().item<double>(), 0.0);
    }
  }
  EXPECT_EQ(segmentation(300, 255).counted(masks), 1.0);
  masks.fill_(255);
  EXPECT_EQ(segmentation(300, 255).loss(outputs, masks).item<float>(), 0.0F)
      << "who says it gets it";
  EXPECT_EQ(segmentation(255).loss(outputs, masks).item<float>(), 0.0F);
  std::vector<float> pixels(2 * 2);
  std::vector<std::int64_t> read(2 * 2);
  data->read(std::vector<std::int64_t>{0, 1}, 0, pixels, read);
  EXPECT_EQ(read[0], 255);
}

// A loss of values that broadcasts trains for something else.
TEST_F(TaskTest, OutputsOfAnotherShapeThanTheTargetsAreRefused) {
  for (const Task& task : {multi_label(1), regression()}) {
    EXPECT_GE(task.loss(at::rand({4, 1}), at::ones({4, 1})).item<float>(), 0);
    for (const at::Tensor& targets : {at::ones({4}), at::ones({1, 1})}) {
      try {
        (void)task.loss(at::rand({4, 1}), targets);
        ADD_FAILURE() << task.name;
      } catch (const Exception& error) {
        EXPECT_EQ(error.error().detail, "E_TASK");
        EXPECT_THAT(error.error().message, HasSubstr("differ in shape"));
      }
    }
  }
  EXPECT_ANY_THROW(
      (void)cross_entropy()(at::rand({4, 3}), at::zeros({4, 1}, at::kLong)));
  EXPECT_ANY_THROW((void)segmentation(3).loss(
      at::rand({4, 3, 2, 2}),
      at::zeros({4, 1, 2}, at::kLong)));
}

// What is counted beside metrics needs none.
TEST_F(TaskTest, DetailsAreCountedWithoutMetrics) {
  OwnParts own = parts<Pixels>(mask_data());
  own.task = {
      .name = "pixels",
      .loss = segmentation(2).loss,
      .details = {confusion(2, {.ignore_index = 255})}};
  const TrainResult result = train(config("run", 5.0), {.own = own});
  ASSERT_EQ(result.test->tables.size(), 2U);
  EXPECT_EQ(result.test->tables[0].name, "per_class");
}

TEST_F(TaskTest, MoreThanTheClassesIsNoMetric) {
  const auto classes = as_dataset(
      make_dataset(at::rand({8, 3}), at::arange(8).remainder(2)),
      {.num_classes = 2});
  EXPECT_THROW(task_for(*classes, "auto", "top3"), Exception);
}

TEST_F(TaskTest, ANumberIsMeasuredOnce) {
  const auto classes = as_dataset(
      make_dataset(at::rand({8, 3}), at::arange(8).remainder(4)),
      {.num_classes = 4});
  const Task task = task_for(*classes, "auto", "top3");
  EXPECT_EQ(task.best, "top3");
  std::vector<std::string> names;
  for (const MetricInfo& info : infos_of(task.metrics)) {
    names.push_back(info.name);
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST_F(TaskTest, ColumnsOfResultsAreKept) {
  TrainConfig config = small("run");
  train(config);
  const std::string path = dir_ / "run/results.csv";
  write_file_atomically(
      real_fs(),
      path,
      "epoch,step,train_loss,mine\n1,4,2.5,a\n2,8,2.25,b\n")
      .value();
  config.resume = config.output;
  config.epochs = 3;
  train(config);
  const auto lines = split(get("run", "results.csv"), '\n');
  EXPECT_THAT(lines[0], HasSubstr("epoch,step,train_loss,mine,samples,"));
  EXPECT_THAT(lines[2], HasSubstr("2,8,2.25,b,,"));
  EXPECT_THAT(lines[3], HasSubstr("3,12,"));
}

TEST_F(TaskTest, ATaskOfTenLinesIsTheProgramsOwn) {
  OwnParts own = parts<Line>(line_data());
  own.task = {
      .name = "first column",
      .loss =
          [](const at::Tensor& outputs, const at::Tensor& targets) {
            return (outputs - targets).select(1, 0).abs().mean();
          },
      .metrics = {regression_metrics()},
      .best = "r2"};
  const TrainResult result = train(config("run"), {.own = own});
  EXPECT_EQ(result.best_by, (BestBy{"val_r2", Better::kHigher}));
  EXPECT_THAT(get("run", "args.yaml"), HasSubstr("own:first column"));
}

TEST_F(TaskTest, WhatDoesNotFitIsRefused) {
  TrainConfig masks = config("run");
  masks.task = "segmentation";
  EXPECT_THAT(
      refused(masks, parts<Line>(line_data())).message,
      HasSubstr("needs a mask of classes for each sample"));
  const auto none = as_dataset(make_dataset(at::rand({8, 3})));
  EXPECT_THAT(
      refused(config("run"), parts<Line>(none)).message,
      HasSubstr("no targets"));
  OwnParts vague = parts<Line>(line_data());
  vague.task.loss = [](const at::Tensor& outputs, const at::Tensor& targets) {
    return (outputs - targets).square().mean(1);
  };
  const Error error = refused(config("run"), vague);
  EXPECT_EQ(error.detail, "E_LOSS");
  EXPECT_THAT(error.message, HasSubstr("the loss must be one number"));
  EXPECT_THAT(error.message, HasSubstr("[8]"));
  const auto wrong = as_dataset(
      make_dataset(at::rand({8, 3}), at::arange(8)),
      {.num_classes = 2});
  const Error label = refused(config("run"), parts<Line>(wrong));
  EXPECT_EQ(label.detail, "E_LABEL");
}

} // namespace
} // namespace lockstep::train
