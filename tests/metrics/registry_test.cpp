// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/metrics/cases.h"

namespace lockstep {
namespace {

using test::metric_error;
using test::sums_of;
using test::values_of;
using testing::ElementsAre;

constexpr std::array kTasks{
    MetricTask::kOneLabel,
    MetricTask::kMultilabel,
    MetricTask::kSegmentation,
    MetricTask::kRegression,
    MetricTask::kHeatMaps};

std::vector<std::string> names_of(const Metric& metric) {
  std::vector<std::string> names;
  for (const MetricInfo& info : metric.infos()) {
    names.push_back(info.name);
  }
  return names;
}

TEST(MakeMetric, ListsTheNamesOfATask) {
  EXPECT_THAT(
      metric_names(MetricTask::kSegmentation),
      ElementsAre("segmentation", "miou", "dice", "pixel_acc"));
  EXPECT_THAT(
      metric_names(MetricTask::kHeatMaps),
      ElementsAre("pck", "regression", "mae", "mse", "rmse", "r2"));
  EXPECT_THAT(
      metric_names(MetricTask::kOneLabel),
      ElementsAre(
          "accuracy",
          "top1",
          "top5",
          "confusion",
          "balanced_acc",
          "f1_macro",
          "f1_micro",
          "f1_weighted",
          "precision_macro",
          "precision_micro",
          "precision_weighted",
          "recall_macro",
          "recall_micro",
          "recall_weighted",
          "auroc"));
}

TEST(MakeMetric, MakesEveryNameWithItFirst) {
  for (const MetricTask task : kTasks) {
    for (const std::string& name : metric_names(task)) {
      SCOPED_TRACE(name);
      const auto metric = make_metric(name, {.task = task, .num_classes = 3});
      const std::vector<std::string> numbers = names_of(*metric);
      EXPECT_GE(metric->size(), 1);
      if (std::ranges::find(numbers, name) != numbers.end()) {
        EXPECT_EQ(numbers[0], name);
      }
    }
  }
}

TEST(MakeMetric, PutsAnotherNumberFirstAndKeepsTheRest) {
  const MetricContext context{
      .task = MetricTask::kSegmentation,
      .num_classes = 3};
  const auto usual = make_metric("segmentation", context);
  const auto dice = make_metric("dice", context);
  EXPECT_THAT(names_of(*dice), ElementsAre("dice", "miou", "pixel_acc"));
  torch::manual_seed(5);
  const at::Tensor outputs = torch::randn({2, 3, 4, 4});
  const at::Tensor masks = torch::randint(0, 3, {2, 4, 4});
  const auto sums = sums_of(*dice, outputs, masks);
  EXPECT_EQ(sums, sums_of(*usual, outputs, masks));
  const auto values = usual->values(sums);
  EXPECT_THAT(dice->values(sums), ElementsAre(values[1], values[0], values[2]));
  EXPECT_EQ(dice->tables(sums, {})[0].name, "per_class");
}

TEST(MakeMetric, TakesAnyTopK) {
  EXPECT_THAT(names_of(*make_metric("top1", {})), ElementsAre("top1", "top5"));
  EXPECT_THAT(names_of(*make_metric("top5", {})), ElementsAre("top5", "top1"));
  EXPECT_THAT(
      names_of(*make_metric("top3", {})),
      ElementsAre("top3", "top1", "top5"));
  for (const char* name : {"top", "top0", "top-1", "top3x", "top 3"}) {
    EXPECT_EQ(
        metric_error([&] { make_metric(name, {}); }).detail,
        "E_METRIC_NAME")
        << name;
  }
}

TEST(MakeMetric, PassesTheContextOn) {
  const at::Tensor outputs = torch::zeros({1, 2, 1, 2});
  const at::Tensor masks =
      torch::tensor({0, 255}, at::kLong).reshape({1, 1, 2});
  const MetricContext usual{
      .task = MetricTask::kSegmentation,
      .num_classes = 2};
  EXPECT_EQ(values_of(*make_metric("miou", usual), outputs, masks)[0], 1.0);
  MetricContext other = usual;
  other.ignore_index = 0;
  EXPECT_EQ(
      metric_error([&] {
        values_of(*make_metric("miou", other), outputs, masks);
      }).detail,
      "E_METRIC_LABEL");
  const auto strict = make_metric(
      "multilabel",
      {.task = MetricTask::kMultilabel, .num_classes = 1, .threshold = 0.9});
  EXPECT_EQ(
      values_of(*strict, torch::ones({1, 1}), torch::zeros({1, 1})).back(),
      1.0);
}

TEST(MakeMetric, NamesTheNearest) {
  const Error near =
      metric_error([] { make_metric("f1_marco", {.num_classes = 3}); });
  EXPECT_EQ(near.detail, "E_METRIC_NAME");
  EXPECT_EQ(
      to_string(near),
      "[metrics.make] no metric of classification with one label is called "
      "'f1_marco'. Hint: did you mean 'f1_macro'?");
  EXPECT_EQ(
      to_string(metric_error([] {
        make_metric(
            "top1",
            {.task = MetricTask::kSegmentation, .num_classes = 3});
      })),
      "[metrics.make] no metric of segmentation is called 'top1'. Hint: "
      "metrics are segmentation, miou, dice, pixel_acc.");
}

} // namespace
} // namespace lockstep
