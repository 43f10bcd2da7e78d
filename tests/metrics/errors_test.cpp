// SPDX-License-Identifier: BSD-3-Clause
//
// What the metrics refuse, and in which words.
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "tests/metrics/cases.h"

namespace lockstep {
namespace {

using test::metric_error;
using test::sums_of;

at::Tensor classes_of(std::initializer_list<std::int64_t> list) {
  return torch::tensor(std::vector<std::int64_t>(list), at::kLong);
}

struct BadInput {
  std::function<std::unique_ptr<Metric>()> make = {};
  at::Tensor outputs = {};
  at::Tensor targets = {};
  std::string text = {};
};

void expect_refused(const std::vector<BadInput>& rows) {
  for (const BadInput& row : rows) {
    SCOPED_TRACE(row.text);
    const auto metric = row.make();
    const Error error =
        metric_error([&] { (void)metric->sums(row.outputs, row.targets); });
    EXPECT_EQ(to_string(error), row.text);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.detail, "E_METRIC_INPUT");
  }
}

TEST(MetricErrors, ShapesAndDtypesOfLabels) {
  const auto top = [] { return accuracy(); };
  const auto three = [] { return confusion(3); };
  const auto masks = [] { return segmentation_metrics(3); };
  const at::Tensor labels = classes_of({0, 1});
  const at::Tensor image = torch::zeros({2, 3, 4, 5});
  expect_refused({
      {top,
       torch::zeros({2, 3}),
       at::Tensor(),
       "[metrics.accuracy] there are no targets."},
      {top, at::Tensor(), labels, "[metrics.accuracy] there are no outputs."},
      {top,
       torch::zeros({2}),
       labels,
       "[metrics.accuracy] outputs: expected the shape [N, classes], got [2]."},
      {top,
       labels,
       labels,
       "[metrics.accuracy] outputs: expected a floating-point dtype, got "
       "int64. "
       "Hint: give the model's outputs, not the predicted classes."},
      {top,
       torch::zeros({2, 3}),
       torch::zeros({2}),
       "[metrics.accuracy] targets: expected integers, one class each, got "
       "float32."},
      {three,
       torch::zeros({2, 3}),
       torch::zeros({2, 3}),
       "[metrics.confusion] targets: expected integers, one class each, got "
       "float32. Hint: targets.argmax(1) makes classes of one-hot or mixed "
       "targets."},
      {three,
       torch::zeros({2, 4}),
       labels,
       "[metrics.confusion] outputs: expected the shape [N, 3, ...], got "
       "[2, 4]."},
      {three,
       torch::zeros({3, 3}),
       labels,
       "[metrics.confusion] targets: expected the shape [3] for outputs of "
       "[3, 3], got [2]."},
      {masks,
       torch::zeros({2, 3}),
       labels,
       "[metrics.segmentation] outputs: expected the shape [N, 3, H, W], got "
       "[2, 3]."},
      {masks,
       image,
       torch::zeros({2, 1, 4, 5}, at::kLong),
       "[metrics.segmentation] targets: expected the shape [2, 4, 5] for "
       "outputs of [2, 3, 4, 5], got [2, 1, 4, 5]. Hint: targets.squeeze(1) "
       "takes the channel away."},
      {masks,
       image,
       torch::zeros({2, 4, 6}, at::kByte),
       "[metrics.segmentation] targets: expected the shape [2, 4, 5] for "
       "outputs of [2, 3, 4, 5], got [2, 4, 6]."},
      {masks,
       image,
       torch::zeros({2, 4, 5}, at::kBool),
       "[metrics.segmentation] targets: expected integers, one class each, got "
       "bool."},
      {three,
       torch::zeros({2, 3}).to_sparse(),
       labels,
       "[metrics.confusion] outputs: expected dense real numbers, got sparse "
       "float32."},
      {[] { return auroc(3); },
       torch::zeros({2, 2}),
       labels,
       "[metrics.auroc] outputs: expected the shape [N, 3], got [2, 2]."},
      {top,
       torch::zeros({2, 3}),
       torch::zeros({2}, torch::dtype(at::kLong).device("meta")),
       "[metrics.accuracy] expected outputs and targets on one device, got cpu "
       "and meta."},
  });
}

TEST(MetricErrors, ShapesOfValues) {
  const auto numbers = [] { return regression_metrics(); };
  const at::Tensor maps = torch::zeros({2, 3, 4, 5});
  expect_refused({
      {numbers,
       torch::zeros({4, 1}),
       torch::zeros({4}),
       "[metrics.regression] targets: expected the shape of the outputs, "
       "[4, 1], got [4]. Hint: squeeze(1) takes a dimension of size 1 away, "
       "unsqueeze(1) adds one."},
      {numbers,
       torch::zeros({4}, at::kComplexFloat),
       torch::zeros({4}),
       "[metrics.regression] outputs: expected dense real numbers, got "
       "complex64."},
      {[] { return regression_metrics({.num_outputs = 3}); },
       torch::zeros({4, 2}),
       torch::zeros({4, 2}),
       "[metrics.regression] outputs: expected the shape [N, 3], got [4, 2]."},
      {[] { return multilabel_metrics(3); },
       torch::zeros({4, 3}),
       torch::zeros({4}, at::kLong),
       "[metrics.multilabel] targets: expected the shape of the outputs, "
       "[4, 3], got [4]."},
      {[] { return pck({.num_points = 4}); },
       maps,
       maps,
       "[metrics.pck] outputs: expected the shape [N, 4, H, W], got "
       "[2, 3, 4, 5]."},
      {[] { return pck(); },
       torch::zeros({2, 3, 0, 5}),
       torch::zeros({2, 3, 0, 5}),
       "[metrics.pck] outputs: expected maps of at least one pixel, got none."},
  });
}

std::string outside_text(
    const Metric& metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  const auto sums = sums_of(metric, outputs, targets); // no error yet
  const Error error = metric_error([&] { (void)metric.values(sums); });
  EXPECT_EQ(error.detail, "E_METRIC_LABEL");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  if (const auto whole = metric.tables(
          std::vector<double>(static_cast<std::size_t>(metric.size())),
          {});
      !whole.empty()) {
    EXPECT_EQ(metric_error([&] { (void)metric.tables(sums, {}); }), error);
  }
  return to_string(error);
}

TEST(MetricErrors, LabelsOutsideOfTheClassesAreCountedOnTheDevice) {
  const at::Tensor outputs = torch::zeros({4, 3});
  const at::Tensor labels = classes_of({0, 3, -1, 255});
  EXPECT_EQ(
      outside_text(*confusion(3), outputs, labels),
      "[metrics.confusion] 3 of the targets are no class; expected 0 to 2.");
  EXPECT_EQ(
      outside_text(*confusion(3, {.max_matrix_classes = 0}), outputs, labels),
      "[metrics.confusion] 3 of the targets are no class; expected 0 to 2.");
  EXPECT_EQ(
      outside_text(*confusion(3, {.ignore_index = 255}), outputs, labels),
      "[metrics.confusion] 2 of the targets are no class; expected 0 to 2, or "
      "255 for none.");
  EXPECT_EQ(
      outside_text(*accuracy(), outputs, labels),
      "[metrics.accuracy] 3 of the targets are no class; expected 0 to one "
      "less than the outputs of a sample.");
  EXPECT_EQ(
      outside_text(*auroc(3), outputs, labels),
      "[metrics.auroc] 3 of the targets are no class; expected 0 to 2.");
  EXPECT_EQ(
      outside_text(
          *segmentation_metrics(3),
          torch::zeros({1, 3, 2, 2}),
          labels.reshape({1, 2, 2})),
      "[metrics.segmentation] 2 of the targets are no class; expected 0 to 2, "
      "or 255 for none.");
  const at::Tensor flags = torch::tensor({0.0, 1.0, 0.5, 2.0}).reshape({2, 2});
  EXPECT_EQ(
      outside_text(*multilabel_metrics(2), torch::zeros({2, 2}), flags),
      "[metrics.multilabel] 2 of the targets are no class; expected 0 or 1.");
  EXPECT_EQ(
      outside_text(*multilabel_auroc(2), torch::zeros({2, 2}), flags),
      "[metrics.auroc] 2 of the targets are no class; expected 0 or 1.");
}

TEST(MetricErrors, OptionsNameTheField) {
  const auto text = [](const auto& make) {
    const Error error = metric_error(make);
    EXPECT_EQ(error.detail, "E_METRIC_OPTION");
    return to_string(error);
  };
  EXPECT_EQ(
      text([] { accuracy({}); }),
      "[metrics.accuracy] top: expected a number, got none.");
  EXPECT_EQ(
      text([] {
        accuracy({1, 0});
      }),
      "[metrics.accuracy] top: expected 1 or more, got 0.");
  EXPECT_EQ(
      text([] {
        accuracy({5, 5});
      }),
      "[metrics.accuracy] top: expected different numbers, got 5 twice.");
  EXPECT_EQ(
      text([] { confusion(0); }),
      "[metrics.confusion] num_classes: expected 1 or more, got 0.");
  EXPECT_EQ(
      text([] { auroc(1); }),
      "[metrics.auroc] num_classes: expected 2 or more, got 1.");
  EXPECT_EQ(
      text([] { auroc(1000, {.thresholds = 5000}); }),
      "[metrics.auroc] thresholds: expected 2097 or fewer for num_classes of "
      "1000, got 5000.");
  EXPECT_EQ(
      text([] { multilabel_auroc(3, {.ignore_index = 2}); }),
      "[metrics.auroc] ignore_index: expected none for several labels.");
  EXPECT_EQ(
      text([] { multilabel_metrics(3, {.threshold = 1.0}); }),
      "[metrics.multilabel] threshold: expected a number above 0 and below 1, "
      "got 1.");
  EXPECT_EQ(
      text(
          [] { pck({.threshold = std::numeric_limits<double>::quiet_NaN()}); }),
      "[metrics.pck] threshold: expected a number above 0, got nan.");
  EXPECT_EQ(
      text([] { regression_metrics({.num_outputs = 0}); }),
      "[metrics.regression] num_outputs: expected 1 or more, got 0.");
}

TEST(MetricErrors, SumsAndNamesMustFit) {
  const auto metric = confusion(2);
  const std::vector<double> sums(5);
  const std::vector<std::string> names{"cat", "dog", "eel"};
  const Error wrong_sums =
      metric_error([&] { (void)metric->values(std::vector<double>(4)); });
  EXPECT_EQ(wrong_sums.detail, "E_METRIC_SUMS");
  EXPECT_EQ(
      to_string(wrong_sums),
      "[metrics.confusion] expected 5 sums, got 4. Hint: add what `sums` of "
      "the "
      "same metric gave.");
  const Error wrong_names =
      metric_error([&] { (void)metric->tables(sums, names); });
  EXPECT_EQ(wrong_names.detail, "E_METRIC_OPTION");
  EXPECT_EQ(
      to_string(wrong_names),
      "[metrics.confusion] class_names: expected 2, got 3.");
  for (const test::MetricCase& c : test::metric_cases()) {
    const std::vector<double> more(
        static_cast<std::size_t>(c.metric->size() + 1));
    EXPECT_EQ(
        metric_error([&] { (void)c.metric->values(more); }).detail,
        "E_METRIC_SUMS");
    EXPECT_EQ(
        metric_error([&] { (void)c.metric->values({}); }).detail,
        "E_METRIC_SUMS");
  }
}

} // namespace
} // namespace lockstep
