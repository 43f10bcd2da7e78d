// SPDX-License-Identifier: BSD-3-Clause
//
// How good a model is, in numbers: accuracy, F1, AUROC, mIoU, R2, PCK.
//   const auto metric = segmentation_metrics(/*num_classes=*/21);
//   at::Tensor sums = metric->sums(outputs, masks); // add up over batches
//   metric->values(numbers of sums);                // miou, dice, pixel_acc
// A metric keeps nothing: what it knows of a data set is a row of sums, which
// batches, ranks and interrupted runs add. docs/metrics.md has the formulas.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// Which of two values is better.
enum class Better { kHigher, kLower };

/// One number that a metric gives.
struct MetricInfo {
  /// Lower case; a column of results.csv: "top1", "miou", "f1_macro".
  std::string name = {};
  Better better = Better::kHigher;
  /// For people: "%"; empty for a plain number.
  std::string unit = {};

  friend bool operator==(const MetricInfo&, const MetricInfo&) = default;
};

/// A row of a table: one class, label, column or key point.
struct MetricRow {
  std::string name = {};
  /// One per column; NaN where nothing was counted.
  std::vector<double> values = {};
};

/// Numbers for people and files.
struct MetricTable {
  /// Lower case, unique within the metric: "per_class", "confusion".
  std::string name = {};
  std::vector<std::string> columns = {};
  std::vector<MetricRow> rows = {};
};

/// Numbers that every batch adds to and that an epoch is judged by.
/// Threads: all members may be called from several threads at the same time.
class Metric {
 public:
  Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;
  virtual ~Metric() = default;

  /// At least one; the first is the headline.
  [[nodiscard]] virtual std::vector<MetricInfo> infos() const = 0;
  /// How many sums there are; the same in every call.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// What one batch adds.
  ///
  /// Shape: [size()] float64 on the device of `outputs`. The host does not wait
  /// for the device. An empty batch adds zeros.
  /// Errors: throws kInvalidArgument (E_METRIC_INPUT) for shapes, dtypes or
  /// devices that the metric does not take. Labels outside of the classes are
  /// counted here and refused by `values`.
  [[nodiscard]] virtual at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const = 0;
  /// One per info; NaN where nothing was counted.
  ///
  /// Errors: throws kInvalidArgument if there are not size() sums
  /// (E_METRIC_SUMS) or if labels were outside of the classes (E_METRIC_LABEL).
  [[nodiscard]] virtual std::vector<double> values(
      std::span<const double> sums) const = 0;
  /// Empty if the metric has none. `class_names`: a name per row; empty: rows
  /// are called "0", "1", ...
  ///
  /// Errors: as `values`; also throws kInvalidArgument for another number of
  /// names (E_METRIC_OPTION).
  [[nodiscard]] virtual std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const;
};

/// Targets that are not counted.
struct LabelOptions {
  /// This label is left out. A class with this label is left out of means over
  /// classes.
  std::optional<std::int64_t> ignore_index = {};
};

/// top1, top5, ...: how often the target is among the k highest outputs, in
/// percent. Which of equal outputs come first is up to `at::topk` for the
/// largest k. A k above the number of classes counts all classes.
///
/// Shape: outputs [N, classes] floating, targets [N] integer, or [N, classes]
/// floating shares of classes (mixup, cutmix), of which the largest counts.
/// Errors: throws kInvalidArgument if `top` is empty, has a number below 1 or
/// has one twice (E_METRIC_OPTION).
std::unique_ptr<Metric> accuracy(
    std::vector<std::int64_t> top = {1, 5},
    const LabelOptions& options = {});

/// How `confusion` counts.
struct ConfusionOptions {
  /// As in `LabelOptions`.
  std::optional<std::int64_t> ignore_index = {};
  /// With more classes, three counts per class are kept and there is no
  /// confusion matrix: a matrix of C classes is C * C sums of every batch.
  std::int64_t max_matrix_classes = 256;
};

/// balanced_acc, then f1, precision and recall, each _macro, _micro, _weighted.
/// The prediction is the highest output, the first of equal ones. Tables:
/// per_class and, up to `max_matrix_classes`, confusion (rows: targets,
/// columns: predictions).
///
/// balanced_acc: the mean recall of the classes among the targets
/// (scikit-learn's). _macro: the mean over the classes among targets or
/// predictions. _micro: over all samples; with one label per sample all three
/// are the accuracy. _weighted: each class as often as it is among the targets.
/// Shape: outputs [N, num_classes, ...] floating, targets [N, ...] integer.
/// Errors: throws kInvalidArgument for no class (E_METRIC_OPTION).
std::unique_ptr<Metric> confusion(
    std::int64_t num_classes,
    const ConfusionOptions& options = {});

/// How masks are read.
struct SegmentationOptions {
  /// 255, or -100 where 255 is a class.
  static constexpr std::int64_t kUsual =
      std::numeric_limits<std::int64_t>::min();
  /// As in `LabelOptions`.
  std::optional<std::int64_t> ignore_index = kUsual;
};

/// miou, dice, pixel_acc, from counts over all pixels of all images. A class
/// that neither masks nor predictions have is left out of the means. Table:
/// per_class.
///
/// Shape: outputs [N, num_classes, H, W] floating, masks [N, H, W] integer.
/// Errors: throws kInvalidArgument for no class (E_METRIC_OPTION).
std::unique_ptr<Metric> segmentation_metrics(
    std::int64_t num_classes,
    const SegmentationOptions& options = {});

/// When a label is predicted.
struct MultilabelOptions {
  /// A label is predicted if the sigmoid of its output is above this: above 0
  /// and below 1.
  double threshold = 0.5;
};

/// f1, precision and recall, each _macro and _micro, and exact_match, the share
/// of samples with all labels right. _macro: the mean over all labels; a label
/// that nobody has and nobody predicts counts as 0. Table: per_label.
///
/// Shape: outputs [N, num_labels] floating (before the sigmoid), targets the
/// same, of any dtype but complex, 0 or 1.
/// Errors: throws kInvalidArgument for no label or a threshold out of range
/// (E_METRIC_OPTION).
std::unique_ptr<Metric> multilabel_metrics(
    std::int64_t num_labels,
    const MultilabelOptions& options = {});

/// How finely scores are told apart.
struct AurocOptions {
  /// The curve has a point for each of so many thresholds, evenly from 0 to 1;
  /// at least 2. Scores between two thresholds count as equal.
  std::int64_t thresholds = 200;
  /// As in `LabelOptions`; not for several labels.
  std::optional<std::int64_t> ignore_index = {};
};

/// auroc: the area under the curve of hits against false alarms. Two classes:
/// that of class 1. More: each class against the others, and the mean of those
/// that have both; NaN if none has. NaN, too, if an output is NaN. Table:
/// per_class.
///
/// Shape: outputs [N, num_classes] floating (before the softmax), targets [N]
/// integer.
/// Errors: throws kInvalidArgument for fewer than 2 classes or thresholds, or
/// more than 4,194,304 sums: two per class and threshold (E_METRIC_OPTION).
std::unique_ptr<Metric> auroc(
    std::int64_t num_classes,
    const AurocOptions& options = {});

/// `auroc` of each label and their mean; the scores are sigmoids. Shapes as
/// `multilabel_metrics`; table: per_label.
std::unique_ptr<Metric> multilabel_auroc(
    std::int64_t num_labels,
    const AurocOptions& options = {});

/// What a regression gives.
struct RegressionOptions {
  /// 1: all values are alike, whatever the shape. More: outputs are
  /// [N, num_outputs], and r2 is the mean of the columns' r2.
  std::int64_t num_outputs = 1;
};

/// mae, mse, rmse (the root of mse over all values), r2. Table, of several
/// outputs: per_output.
///
/// r2 is NaN below two values per column. Of targets that are all equal it is 1
/// if every output equals its target, else 0 (as scikit-learn says): targets
/// are equal if their variance is below 1e-13 of their mean square, which is
/// what float64 sums can tell. Shape: outputs (floating) and targets (real)
/// alike: any, or [N, num_outputs]. Errors: throws kInvalidArgument for
/// num_outputs below 1 (E_METRIC_OPTION).
std::unique_ptr<Metric> regression_metrics(
    const RegressionOptions& options = {});

/// What distances between key points are measured in.
enum class PckScale {
  /// Pixels by the longer side of the map.
  kLongerSide,
  /// x by the width, y by the height of the map.
  kEachSide,
  /// Pixels of the map.
  kPixels,
};

/// When a key point is right.
struct PckOptions {
  /// At most so far from the target's. Units: as `scale` says.
  double threshold = 0.05;
  PckScale scale = PckScale::kLongerSide;
  /// Channels; 0: any number, and no table.
  std::int64_t num_points = 0;
};

/// pck: the share of key points at the right place. The place is the highest
/// pixel of a channel, the first of equal ones. Channels whose target has no
/// pixel above 0 have no key point and are left out. Table: per_point.
///
/// Shape: outputs (floating) and targets (real) [N, points, H, W].
/// Errors: throws kInvalidArgument for a threshold that is no number above 0 or
/// a negative number of points (E_METRIC_OPTION).
std::unique_ptr<Metric> pck(const PckOptions& options = {});

/// What outputs and targets mean.
enum class MetricTask {
  kOneLabel,
  kMultilabel,
  kSegmentation,
  kRegression,
  kHeatMaps,
};

/// What `make_metric` knows of the data.
struct MetricContext {
  MetricTask task = MetricTask::kOneLabel;
  /// Classes, labels, values per sample or key points.
  std::int64_t num_classes = 0;
  /// Empty: what the metric's own options say.
  std::optional<std::int64_t> ignore_index = {};
  /// Of `multilabel_metrics` and `pck`; empty: what their own options say.
  std::optional<double> threshold = {};
};

/// A metric by its name or by that of one of its numbers, which then is the
/// headline: "segmentation", "dice". "topK" is taken for every K.
///
/// Errors: throws kInvalidArgument for a name that the task does not have, with
/// the nearest one (E_METRIC_NAME); as the metric's own function.
std::unique_ptr<Metric> make_metric(
    std::string_view name,
    const MetricContext& context);

/// Names that `make_metric` takes for a task, the usual metric first: metrics
/// and their numbers.
std::vector<std::string> metric_names(MetricTask task);

} // namespace lockstep
#pragma GCC visibility pop
