// SPDX-License-Identifier: BSD-3-Clause
//
// All that is measured of a trained model, for each kind of task.
#include "lockstep/train/inference/evaluation.h"

#include <cmath>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/made_dataset.h"
#include "lockstep/train/inference/mapped_classes.h"
#include "lockstep/train/inference/outputs.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Gives what it gets: a sample is its outputs.
struct Same : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    return x;
  }
};

TrainedData trained_on(const Dataset& data, std::string task) {
  TrainConfig config;
  config.task = std::move(task);
  return trained_data(data, config);
}

Evaluation judged(
    const std::shared_ptr<const Dataset>& data,
    const std::string& task,
    std::int64_t batch_size = 7) {
  const auto strategy = AnyModel(std::make_shared<Same>())
                            .strategy({.task = task_for(*data, task)});
  return evaluate_all(
      *strategy,
      {data},
      trained_on(*data, task),
      task_for(*data, task),
      {.batch_size = batch_size, .worst = 4});
}

const MetricTable& table(const Evaluation& found, const std::string& name) {
  return *std::ranges::find(found.tables, name, &MetricTable::name);
}

TEST(Evaluation, OfClasses) {
  torch::manual_seed(3);
  const at::Tensor outputs = at::randn({50, 3});
  const at::Tensor labels = at::randint(0, 3, {50}, at::kLong);
  const auto data = as_dataset(
      make_dataset(outputs, labels),
      {.num_classes = 3, .class_names = {"a", "b", "c"}});
  const Evaluation found = judged(data, "classification");
  EXPECT_EQ(found.samples, 50);
  EXPECT_NEAR(
      found.score.loss,
      at::cross_entropy_loss(outputs, labels).item<double>(),
      1e-6);
  EXPECT_NEAR(
      found.score.metric("top1").value(),
      100 * outputs.argmax(1).eq(labels).to(at::kDouble).mean().item<double>(),
      1e-9);
  EXPECT_TRUE(found.score.metric("f1_macro"));
  EXPECT_TRUE(found.score.metric("auroc"));
  const MetricTable& classes = table(found, "per_class");
  EXPECT_THAT(classes.rows, SizeIs(3));
  EXPECT_EQ(classes.rows[1].name, "b");
  EXPECT_THAT(classes.columns, Contains("recall"));
  EXPECT_THAT(classes.columns, Contains("auroc"));
  double all = 0;
  for (const MetricRow& row : table(found, "confusion").rows) {
    all += row.values[0] + row.values[1] + row.values[2];
  }
  EXPECT_EQ(all, 50);
}

MetricTable per_class(
    std::vector<std::string> columns,
    std::vector<MetricRow> rows) {
  return {
      .name = "per_class",
      .columns = std::move(columns),
      .rows = std::move(rows)};
}

std::string text_of(const std::vector<MetricTable>& tables) {
  std::string text;
  for (const MetricTable& table : tables) {
    text += join(table.columns, " ");
    for (const MetricRow& row : table.rows) {
      text += "|" + row.name;
      for (const double value : row.values) {
        text += std::isnan(value) ? " -" : format(" {}", shortest(value));
      }
    }
  }
  return text;
}

// Whichever metric comes first, with all classes or some of them.
TEST(Evaluation, TablesOfOneNameLoseNothing) {
  const auto text = [](const MetricTable& first, const MetricTable& second) {
    std::vector<MetricTable> tables;
    add_table(tables, first);
    add_table(tables, second);
    return text_of(tables);
  };
  const MetricTable some = per_class({"area", "actual"}, {{"dog", {0.5, 3}}});
  const MetricTable all = per_class(
      {"recall", "actual"},
      {{"cat", {0.25, 2}}, {"dog", {0.75, 3}}, {"eel", {1, 1}}});
  EXPECT_EQ(
      text(some, all),
      "area actual recall|cat - 2.0 0.25|dog 0.5 3.0 0.75|eel - 1.0 1.0");
  EXPECT_EQ(
      text(all, some),
      "recall actual area|cat 0.25 2.0 -|dog 0.75 3.0 0.5|eel 1.0 1.0 -");
  const MetricTable twins =
      per_class({"iou"}, {{"cat", {0.1}}, {"cat", {0.2}}});
  EXPECT_EQ(
      text(twins, per_class({"dice"}, {{"cat", {1}}, {"cat", {2}}})),
      "iou dice|cat 0.1 1.0|cat 0.2 2.0");
  EXPECT_EQ(
      text(per_class({"iou"}, {{"bee", {1}}}), twins),
      "iou|cat 0.1|cat 0.2|bee 1.0");
}

TEST(Evaluation, AMetricOfOneOfTwoClassesHidesNoClass) {
  torch::manual_seed(7);
  const auto data = as_dataset(
      make_dataset(at::randn({20, 2}), at::arange(20).remainder(2)),
      {.num_classes = 2, .class_names = {"cat", "dog"}});
  const Task task = task_for(*data, "classification", "auroc");
  const auto strategy =
      AnyModel(std::make_shared<Same>()).strategy({.task = task});
  const Evaluation found = evaluate_all(
      *strategy,
      {data},
      trained_on(*data, "classification"),
      task,
      {.batch_size = 7});
  const MetricTable& classes = table(found, "per_class");
  ASSERT_THAT(classes.rows, SizeIs(2));
  EXPECT_EQ(classes.rows[0].name, "cat");
  EXPECT_EQ(classes.rows[1].name, "dog");
  EXPECT_THAT(classes.columns, Contains("recall"));
}

TEST(Evaluation, TheWorstSamplesHaveTheHighestLosses) {
  torch::manual_seed(4);
  const at::Tensor outputs = at::randn({40, 3});
  const at::Tensor labels = at::randint(0, 3, {40}, at::kLong);
  const auto data =
      as_dataset(make_dataset(outputs, labels), {.num_classes = 3});
  const auto [losses, order] = at::cross_entropy_loss(
                                   outputs,
                                   labels,
                                   /*weight=*/{},
                                   at::Reduction::None)
                                   .sort(/*dim=*/0, /*descending=*/true);
  for (const std::int64_t batch_size : {3, 40}) {
    const auto worst = judged(data, "classification", batch_size).worst;
    ASSERT_THAT(worst, SizeIs(4));
    for (std::int64_t i = 0; i < 4; ++i) {
      const WorstSample& sample = worst[static_cast<std::size_t>(i)];
      EXPECT_EQ(sample.index, order[i].item<std::int64_t>());
      EXPECT_NEAR(sample.loss, losses[i].item<double>(), 1e-6);
      EXPECT_TRUE(at::equal(sample.output, outputs[sample.index]));
      EXPECT_TRUE(at::equal(sample.target, labels[sample.index]));
    }
  }
}

TEST(Evaluation, OfMasks) {
  torch::manual_seed(5);
  const at::Tensor outputs = at::randn({6, 2, 4, 5});
  at::Tensor masks = at::randint(0, 2, {6, 4, 5}, at::kLong);
  masks.select(2, 0).fill_(255);
  masks[2].fill_(255); // nothing of it counts
  const auto data =
      as_dataset(make_dataset(outputs, masks), {.num_classes = 2});
  const Evaluation found = judged(data, "segmentation");
  const at::Tensor counted = masks.ne(255);
  const at::Tensor hits =
      outputs.argmax(1).eq(masks).logical_and(counted).sum();
  EXPECT_NEAR(
      found.score.metric("pixel_acc").value(),
      hits.item<double>() / counted.sum().item<double>(),
      1e-9);
  EXPECT_THAT(table(found, "per_class").columns, Contains("iou"));
  EXPECT_THAT(table(found, "confusion").rows, SizeIs(2));
  for (const WorstSample& sample : found.worst) {
    EXPECT_NEAR(
        sample.loss,
        at::cross_entropy_loss(
            outputs[sample.index].unsqueeze(0),
            masks[sample.index].unsqueeze(0),
            /*weight=*/{},
            at::Reduction::Mean,
            /*ignore_index=*/255)
            .item<double>(),
        1e-6);
  }
  const at::Tensor numbers =
      masks_of(outputs, trained_on(*data, "segmentation"));
  EXPECT_TRUE(at::equal(numbers, outputs.argmax(1).to(at::kByte)));
}

TEST(Evaluation, OfLabelsAndValues) {
  torch::manual_seed(6);
  const at::Tensor outputs = at::randn({30, 3});
  const at::Tensor labels = at::rand({30, 3}).gt(0.5).to(at::kFloat);
  const auto data = as_dataset(make_dataset(outputs, labels));
  const Evaluation of_labels = judged(data, "multilabel");
  EXPECT_NEAR(
      of_labels.score.loss,
      at::binary_cross_entropy_with_logits(outputs, labels).item<double>(),
      1e-6);
  EXPECT_THAT(table(of_labels, "per_label").columns, Contains("auroc"));
  const Evaluation of_values = judged(data, "regression");
  const auto error = (outputs - labels).abs().mean().item<double>();
  EXPECT_NEAR(of_values.score.metric("mae").value(), error, 1e-6);
  const MetricTable& columns = table(of_values, "per_output");
  ASSERT_THAT(columns.rows, SizeIs(3));
  EXPECT_NEAR(
      columns.rows[1].values[0],
      (outputs - labels).abs().mean(0)[1].item<double>(),
      1e-6);
}

TEST(Outputs, AreSharesAndValues) {
  const at::Tensor outputs = at::randn({4, 3});
  TrainedData data{.target = {.kind = TargetKind::kClasses}, .num_classes = 3};
  EXPECT_TRUE(at::equal(
      scores_of(outputs, OutputKind::kClasses, data),
      at::softmax(outputs, 1)));
  data.target = {.kind = TargetKind::kValues, .shape = {3}};
  EXPECT_TRUE(at::equal(scores_of(outputs, output_kind(data), data), outputs));
  data.task = "multilabel";
  EXPECT_TRUE(at::equal(
      scores_of(outputs, output_kind(data), data),
      outputs.sigmoid()));
  data.target.shape = {5};
  EXPECT_THROW(scores_of(outputs, output_kind(data), data), Exception);
  data.target = {};
  EXPECT_THROW(output_kind(data), Exception);
}

std::shared_ptr<Dataset> named(std::vector<std::string> names) {
  const auto count = std::ssize(names);
  return as_dataset(
      make_dataset(at::rand({count, 2}), at::arange(count, at::kLong)),
      {.num_classes = count, .class_names = std::move(names)});
}

std::vector<std::int64_t> targets_of(const Dataset& data) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    indices.push_back(i);
  }
  std::vector<float> images(indices.size() * 2);
  std::vector<std::int64_t> targets(indices.size());
  data.read(indices, 0, images, targets);
  return targets;
}

TEST(Evaluation, ALossThatIsNoNumberIsTheWorst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> outputs{1, nan, 5, 2, inf, 3, nan, 4};
  const auto data = as_dataset(make_dataset(
      torch::tensor(outputs).reshape({-1, 1}),
      at::zeros({std::ssize(outputs), 1})));
  for (const std::int64_t batch_size : {1, 3, 8}) {
    std::vector<std::int64_t> worst;
    for (const WorstSample& sample :
         judged(data, "regression", batch_size).worst) {
      worst.push_back(sample.index);
    }
    EXPECT_THAT(worst, ElementsAre(1, 6, 4, 2)) << batch_size;
  }
}

TEST(MappedClasses, AreFoundByName) {
  const TrainedData trained =
      trained_on(*named({"cat", "dog", "fox"}), "classification");
  const auto same = named({"cat", "dog", "fox"});
  EXPECT_EQ(with_classes_of(same, trained), same);
  const auto fewer = with_classes_of(named({"fox", "cat"}), trained);
  EXPECT_THAT(targets_of(*fewer), ElementsAre(2, 0));
  EXPECT_EQ(fewer->num_classes(), 3);
  EXPECT_THAT(fewer->class_names(), ElementsAre("cat", "dog", "fox"));
  try {
    with_classes_of(named({"cat", "cow"}), trained);
    FAIL() << "no cow was seen";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().detail, "E_CLASSES");
    EXPECT_THAT(exception.error().message, HasSubstr("does not know 'cow'"));
  }
}

TEST(MappedClasses, WithoutNamesTheirNumberMustBeThatOfTheModel) {
  const TrainedData trained =
      trained_on(*named({"cat", "dog"}), "classification");
  const auto nameless = [](std::int64_t classes) {
    return as_dataset(
        make_dataset(at::rand({2, 2}), at::arange(2, at::kLong)),
        {.num_classes = classes});
  };
  EXPECT_NO_THROW(with_classes_of(nameless(2), trained));
  EXPECT_THROW(with_classes_of(nameless(3), trained), Exception);
  const auto values = as_dataset(make_dataset(at::rand({2, 2}), at::rand({2})));
  EXPECT_THROW(with_classes_of(values, trained), Exception);
}

} // namespace
} // namespace lockstep::train
