// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/metrics/metric.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/metrics/cases.h"

namespace lockstep {
namespace {

using test::sums_of;
using test::values_of;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsNan;

// As lockstep/train counts the hits of an epoch.
double hits(const at::Tensor& outputs, const at::Tensor& targets, int k) {
  const auto most = std::min<std::int64_t>(5, outputs.size(1));
  const at::Tensor best = std::get<1>(outputs.topk(most, 1));
  return best.eq(targets.unsqueeze(1))
      .narrow(1, 0, std::min<std::int64_t>(k, most))
      .sum(at::kDouble)
      .item<double>();
}

TEST(Accuracy, CountsTheLargestShareOfMixedTargets) {
  const at::Tensor outputs = torch::rand({6, 4});
  const at::Tensor shares = torch::softmax(torch::rand({6, 4}), 1);
  const auto metric = accuracy();
  EXPECT_TRUE(metric->sums(outputs, shares)
                  .equal(metric->sums(outputs, shares.argmax(1))));
}

TEST(Accuracy, CountsTiesAsOneTopkDoes) {
  torch::manual_seed(1);
  const auto metric = accuracy();
  for (const std::int64_t classes : {1, 3, 5, 10, 100}) {
    const at::Tensor outputs = torch::randint(0, 3, {200, classes}) * 1.0;
    const at::Tensor targets = torch::randint(0, classes, {200});
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      EXPECT_THAT(
          sums_of(*metric, outputs.to(type), targets),
          ElementsAre(
              hits(outputs.to(type), targets, 1),
              hits(outputs.to(type), targets, 5),
              200.0,
              0.0));
    }
  }
}

TEST(Accuracy, IsInPercentAndKeepsTheOrderOfTop) {
  const auto metric = accuracy({3, 1});
  EXPECT_THAT(
      metric->infos(),
      ElementsAre(
          MetricInfo{.name = "top3", .unit = "%"},
          MetricInfo{.name = "top1", .unit = "%"}));
  const at::Tensor outputs = torch::eye(4);
  EXPECT_THAT(
      values_of(*metric, outputs, torch::tensor({0, 1, 2, 0}, at::kLong)),
      ElementsAre(100.0, 75.0));
}

TEST(Metric, SumsHaveNoGradientOfTheirOwn) {
  at::Tensor outputs = torch::randn({4, 3}, at::requires_grad());
  const at::Tensor targets = torch::tensor({0, 1, 2, 0}, at::kLong);
  sums_of(*confusion(3), outputs, targets); // expects none
  sums_of(*accuracy(), outputs, targets);
  sums_of(*auroc(3), outputs, targets);
  sums_of(*multilabel_metrics(3), outputs, torch::eye(4).narrow(1, 0, 3));
  sums_of(*regression_metrics(), outputs, torch::zeros({4, 3}));
}

// Inputs are read, never written: targets that need no conversion, too.
TEST(Metric, LeavesOutputsAndTargetsAlone) {
  for (const test::MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const at::Tensor outputs = c.outputs.clone();
    const at::Tensor targets = c.targets.clone();
    sums_of(*c.metric, outputs, targets);
    EXPECT_TRUE(outputs.equal(c.outputs));
    EXPECT_TRUE(targets.equal(c.targets));
  }
}

TEST(Confusion, NamesRowsAndColumnsByClass) {
  const auto metric = confusion(3);
  const at::Tensor targets = torch::tensor({0, 1, 1, 2}, at::kLong);
  const at::Tensor outputs =
      torch::one_hot(torch::tensor({0, 1, 2, 2}, at::kLong)).to(at::kFloat);
  const std::vector<std::string> names{"cat", "dog", "eel"};
  const auto tables = metric->tables(sums_of(*metric, outputs, targets), names);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "per_class");
  EXPECT_THAT(
      tables[0].columns,
      ElementsAre("f1", "precision", "recall", "predicted", "actual"));
  EXPECT_EQ(tables[0].rows[1].name, "dog");
  EXPECT_THAT(tables[0].rows[1].values, ElementsAre(2.0 / 3, 1, 0.5, 1, 2));
  EXPECT_EQ(tables[1].name, "confusion");
  EXPECT_THAT(tables[1].columns, ElementsAreArray(names));
  EXPECT_EQ(tables[1].rows[1].name, "dog");
  EXPECT_THAT(tables[1].rows[1].values, ElementsAre(0, 1, 1));
}

TEST(Confusion, KeepsNoMatrixOfManyClasses) {
  EXPECT_EQ(confusion(256)->size(), 256 * 256 + 1);
  EXPECT_EQ(confusion(257)->size(), 3 * 257 + 1);
  const auto small = confusion(6, {.max_matrix_classes = 5});
  torch::manual_seed(2);
  const at::Tensor outputs = torch::randn({50, 6});
  const at::Tensor targets = torch::randint(0, 6, {50});
  const auto sums = sums_of(*small, outputs, targets);
  EXPECT_EQ(small->tables(sums, {}).size(), 1U);
  EXPECT_EQ(small->values(sums), values_of(*confusion(6), outputs, targets));
}

TEST(Segmentation, LeavesOutClassesThatAreNowhere) {
  const auto metric = segmentation_metrics(4);
  const at::Tensor masks = torch::zeros({1, 2, 2}, at::kLong);
  const at::Tensor outputs = torch::tensor({1, 0, 0, 0}, at::kFloat)
                                 .reshape({1, 4, 1, 1})
                                 .expand({1, 4, 2, 2});
  const auto sums = sums_of(*metric, outputs, masks);
  EXPECT_THAT(metric->values(sums), ElementsAre(1, 1, 1));
  const auto tables = metric->tables(sums, {});
  EXPECT_THAT(tables[0].rows[0].values, ElementsAre(1, 1, 1, 1, 4, 4));
  EXPECT_THAT(
      tables[0].rows[3].values,
      ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 0, 0));
  // One pixel of class 3: its IoU is 0 and counts.
  masks[0][0][0] = 3;
  EXPECT_THAT(
      values_of(*metric, outputs, masks),
      ElementsAre(DoubleEq(0.375), DoubleEq(3.0 / 7), 0.75));
}

// What is not counted by default is no class of theirs.
TEST(Segmentation, CountsClass255OfMany) {
  const at::Tensor masks = torch::full({1, 1, 2}, 255, at::kLong);
  masks[0][0][1] = -100;
  at::Tensor outputs = torch::zeros({1, 300, 1, 2});
  outputs.select(1, 255).fill_(1);
  for (const auto& metric :
       {std::shared_ptr<Metric>(segmentation_metrics(300)),
        std::shared_ptr<Metric>(make_metric(
            "segmentation",
            {.task = MetricTask::kSegmentation, .num_classes = 300}))}) {
    EXPECT_THAT(values_of(*metric, outputs, masks), ElementsAre(1, 1, 1));
  }
  const auto strict = segmentation_metrics(21, {.ignore_index = std::nullopt});
  EXPECT_THROW(
      values_of(*strict, torch::zeros({1, 21, 1, 2}), masks.clamp_min(0)),
      Exception)
      << "255 is no class, and nothing is left out";
  const auto told = segmentation_metrics(300, {.ignore_index = 255});
  masks[0][0][1] = 0;
  EXPECT_THAT(values_of(*told, outputs, masks).back(), 0);
}

TEST(Multilabel, TakesTargetsOfAnyDtypeAndDecidesOnTheOutput) {
  const auto metric = multilabel_metrics(2);
  const at::Tensor outputs =
      torch::tensor({1e-30, 0.0, -1e-30, 1.0}, at::kDouble).reshape({2, 2});
  const at::Tensor targets = torch::tensor({1, 0, 0, 1}).reshape({2, 2});
  for (const at::ScalarType type :
       {at::kBool, at::kByte, at::kLong, at::kHalf, at::kFloat}) {
    EXPECT_EQ(values_of(*metric, outputs, targets.to(type)).back(), 1.0);
  }
}

TEST(Auroc, IsOneForTheRightOrderAndAHalfForEqualScores) {
  const auto metric = auroc(2);
  const at::Tensor targets = torch::tensor({0, 0, 1, 1}, at::kLong);
  const at::Tensor scores = torch::tensor({-2.0, -1.0, 1.0, 2.0});
  const at::Tensor right = torch::stack({-scores, scores}, 1);
  EXPECT_THAT(values_of(*metric, right, targets), ElementsAre(1.0));
  EXPECT_THAT(values_of(*metric, -right, targets), ElementsAre(0.0));
  EXPECT_THAT(values_of(*metric, right * 0, targets), ElementsAre(0.5));
  // Probabilities of 1, also of negatives: the curve begins at (0, 0) still.
  EXPECT_THAT(
      values_of(*metric, torch::tensor({0.0, 900.0}).expand({4, 2}), targets),
      ElementsAre(0.5));
}

TEST(Auroc, IsNaNIfAnOutputIs) {
  at::Tensor outputs = torch::randn({4, 3});
  const at::Tensor targets = torch::tensor({0, 1, 2, -1}, at::kLong);
  const auto metric = auroc(3, {.ignore_index = -1});
  outputs[3][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isnan(values_of(*metric, outputs, targets)[0]));
  outputs[2][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(values_of(*metric, outputs, targets)[0]));
}

TEST(Regression, ErrorsAreLowerForBetter) {
  for (const MetricInfo& info : regression_metrics()->infos()) {
    EXPECT_EQ(info.better == Better::kLower, info.name != "r2") << info.name;
  }
}

TEST(Regression, R2StaysRightFarFromZero) {
  torch::manual_seed(3);
  const at::Tensor targets = torch::randn({1000}, at::kDouble) + 1e4;
  const at::Tensor outputs = targets + 0.5 * torch::randn({1000}, at::kDouble);
  const auto spread = (targets - targets.mean()).square().sum().item<double>();
  const auto errors = (targets - outputs).square().sum().item<double>();
  EXPECT_NEAR(
      values_of(*regression_metrics(), outputs, targets)[3],
      1 - errors / spread,
      1e-7);
}

TEST(Regression, TakesRoundingForNoSpread) {
  const at::Tensor targets = torch::full({1000}, 0.3, at::kDouble);
  EXPECT_EQ(values_of(*regression_metrics(), targets, targets)[3], 1.0);
  EXPECT_EQ(values_of(*regression_metrics(), targets + 1, targets)[3], 0.0);
}

TEST(Regression, SumsInFloat64) {
  const at::Tensor outputs = torch::full({1'000'000}, 0.1, at::kHalf);
  const at::Tensor targets = torch::zeros({1'000'000}, at::kFloat);
  EXPECT_NEAR(
      values_of(*regression_metrics(), outputs, targets)[0],
      outputs[0].item<double>(),
      1e-12);
}

TEST(Regression, IsNaNIfAnOutputIs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(
      values_of(
          *regression_metrics(),
          torch::tensor({1.0, nan, 2.0}),
          torch::tensor({1.0, 1.0, 1.0})),
      ElementsAre(IsNan(), IsNan(), IsNan(), IsNan()));
}

// A map with its highest pixel at (y, x).
at::Tensor map_of(std::int64_t y, std::int64_t x) {
  at::Tensor map = torch::zeros({1, 1, 40, 60});
  map[0][0][y][x] = 1.0;
  return map;
}

TEST(Pck, CountsDistancesOfExactlyTheThreshold) {
  const at::Tensor target = map_of(10, 10);
  const auto longer = pck(); // 0.05 of 60: 3 pixels
  EXPECT_THAT(values_of(*longer, map_of(10, 13), target), ElementsAre(1.0));
  EXPECT_THAT(values_of(*longer, map_of(13, 10), target), ElementsAre(1.0));
  EXPECT_THAT(values_of(*longer, map_of(11, 13), target), ElementsAre(0.0));
  const auto each = pck({.scale = PckScale::kEachSide}); // 2 pixels of 40
  EXPECT_THAT(values_of(*each, map_of(12, 10), target), ElementsAre(1.0));
  EXPECT_THAT(values_of(*each, map_of(13, 10), target), ElementsAre(0.0));
  EXPECT_THAT(values_of(*each, map_of(10, 13), target), ElementsAre(1.0));
  const auto pixels = pck({.threshold = 5, .scale = PckScale::kPixels});
  EXPECT_THAT(values_of(*pixels, map_of(13, 14), target), ElementsAre(1.0));
  EXPECT_THAT(values_of(*pixels, map_of(14, 14), target), ElementsAre(0.0));
}

TEST(Pck, LeavesOutChannelsWithoutAKeyPoint) {
  const at::Tensor outputs = torch::cat({map_of(1, 1), map_of(2, 2)}, 1);
  const at::Tensor targets =
      torch::cat({map_of(1, 1), torch::zeros({1, 1, 40, 60})}, 1);
  const auto metric = pck({.num_points = 2});
  const auto sums = sums_of(*metric, outputs, targets.to(at::kBool));
  EXPECT_THAT(metric->values(sums), ElementsAre(1.0));
  const std::vector<std::string> names{"nose", "tail"};
  const auto tables = metric->tables(sums, names);
  EXPECT_EQ(tables[0].rows[1].name, "tail");
  EXPECT_THAT(tables[0].rows[1].values, ElementsAre(IsNan(), 0.0));
  EXPECT_THAT(values_of(*pck(), outputs, targets * 0), ElementsAre(IsNan()));
}

// As a program writes its own.
class Bias final : public Metric {
 public:
  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return {{.name = "bias", .better = Better::kLower, .unit = "mm"}};
  }
  [[nodiscard]] std::int64_t size() const override {
    return 2;
  }
  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::Tensor errors = (outputs - targets).to(at::kDouble);
    return torch::stack({errors.sum(), torch::ones_like(errors).sum()});
  }
  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    return {sums[0] / sums[1]};
  }
};

TEST(Metric, CanBeAProgramsOwn) {
  const Bias metric;
  const std::vector<double> sums =
      sums_of(metric, torch::tensor({1.0, 3.0}), torch::tensor({0.0, 1.0}));
  EXPECT_THAT(metric.values(sums), ElementsAre(1.5));
  EXPECT_TRUE(metric.tables(sums, {}).empty());
}

} // namespace
} // namespace lockstep
