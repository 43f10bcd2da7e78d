// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/max.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/internal/uncounted.h"
#include "lockstep/base/strings.h"
#include "lockstep/metrics/internal/checks.h"
#include "lockstep/metrics/internal/class_rates.h"
#include "lockstep/metrics/internal/counts.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

using internal::Average;
using internal::ClassCounts;
using internal::ClassTable;

constexpr std::string_view kConfusion = "confusion";
constexpr std::string_view kSegmentation = "segmentation";
constexpr std::array kAllAverages{
    Average::kMacro,
    Average::kMicro,
    Average::kWeighted};

// What counting predicted and true classes needs to know.
struct CountedClasses {
  std::string_view metric = {};
  std::int64_t num_classes = 0;
  std::optional<std::int64_t> ignore_index = {};
  // Each pair of classes is counted; else hits, predicted and actual.
  bool has_matrix = false;

  [[nodiscard]] std::int64_t size() const {
    return num_classes * (has_matrix ? num_classes : 3) + 1;
  }
};

at::Tensor count_on_cpu(
    const CountedClasses& counted,
    const at::Tensor& predicted,
    const at::Tensor& targets) {
  const std::int64_t classes = counted.num_classes;
  at::Tensor sums = at::zeros({counted.size()}, at::kDouble);
  auto* const sum = sums.mutable_data_ptr<double>();
  const auto* const found = predicted.const_data_ptr<std::int64_t>();
  sum[counted.size() - 1] = internal::count_labels(
      targets,
      classes,
      counted.ignore_index,
      [&](std::int64_t i, std::int64_t label) {
        if (counted.has_matrix) {
          ++sum[label * classes + found[i]];
          return;
        }
        sum[label] += found[i] == label ? 1 : 0;
        ++sum[classes + found[i]];
        ++sum[2 * classes + label];
      });
  return sums;
}

// Sums: num_classes * num_classes (rows: targets), or hits, predicted, actual
// by class; then the labels outside of the classes.
at::Tensor count_classes(
    const CountedClasses& counted,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  internal::check_labels(counted.metric, outputs, targets);
  const std::int64_t classes = counted.num_classes;
  // The first of equal outputs, as argmax, in half its time on the CPU.
  const at::Tensor predicted = std::get<1>(outputs.detach().max(/*dim=*/1));
  if (predicted.is_cpu()) {
    return count_on_cpu(counted, predicted.contiguous(), targets);
  }
  const internal::Labels labels =
      internal::read_labels(targets, classes, counted.ignore_index);
  const at::Tensor& actual = labels.classes;
  const at::Tensor& is_counted = labels.is_counted;
  if (counted.has_matrix) {
    const at::Tensor pairs = actual.mul(classes).add_(predicted);
    return internal::joined_sums(
        {internal::count_each(pairs, is_counted, classes * classes),
         labels.outside});
  }
  const at::Tensor is_hit = predicted.eq(actual).logical_and_(is_counted);
  return internal::joined_sums(
      {internal::count_each(actual, is_hit, classes),
       internal::count_each(predicted, is_counted, classes),
       internal::count_each(actual, is_counted, classes),
       labels.outside});
}

std::string classes_text(std::int64_t num_classes) {
  return num_classes == 1 ? "0" : format("0 to {}", num_classes - 1);
}

// Errors: as `Metric::values`.
ClassTable read_table(
    const CountedClasses& counted,
    std::span<const double> sums) {
  internal::check_sums(counted.metric, sums, counted.size());
  internal::check_outside(
      counted.metric,
      sums.back(),
      classes_text(counted.num_classes),
      counted.ignore_index);
  const auto classes = static_cast<std::size_t>(counted.num_classes);
  ClassTable table{.all = std::vector<ClassCounts>(classes)};
  for (std::size_t i = 0; i < classes; ++i) {
    if (counted.has_matrix) {
      table.all[i].hits = sums[i * classes + i];
      for (std::size_t j = 0; j < classes; ++j) {
        table.all[i].actual += sums[i * classes + j];
        table.all[i].predicted += sums[j * classes + i];
      }
    } else {
      table.all[i] = {
          .hits = sums[i],
          .predicted = sums[classes + i],
          .actual = sums[2 * classes + i]};
    }
  }
  table.is_averaged.reserve(classes);
  for (std::size_t i = 0; i < classes; ++i) {
    const bool is_ignored =
        counted.ignore_index == static_cast<std::int64_t>(i);
    table.is_averaged.push_back(table.all[i].occurs() && !is_ignored);
  }
  return table;
}

// The mean recall of the classes among the targets.
double balanced_accuracy(const ClassTable& table) {
  double sum = 0;
  double classes = 0;
  for (const ClassCounts& counts : table.all) {
    if (counts.actual > 0) {
      sum += counts.recall();
      ++classes;
    }
  }
  return internal::share(sum, classes);
}

class ConfusionMetric final : public Metric {
 public:
  ConfusionMetric(std::int64_t num_classes, const ConfusionOptions& options)
      : counted_{
            .metric = kConfusion,
            .num_classes = num_classes,
            .ignore_index = options.ignore_index,
            .has_matrix = num_classes <= options.max_matrix_classes} {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    std::vector<MetricInfo> infos = internal::rate_infos(kAllAverages);
    infos.insert(infos.begin(), {.name = "balanced_acc"});
    return infos;
  }

  [[nodiscard]] std::int64_t size() const override {
    return counted_.size();
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kConfusion, outputs, targets);
    if (outputs.dim() < 2 || outputs.size(1) != counted_.num_classes) {
      internal::check_shape(
          kConfusion,
          outputs,
          std::array<std::int64_t, 2>{-1, counted_.num_classes},
          format("[N, {}, ...]", counted_.num_classes));
    }
    return count_classes(counted_, outputs, targets);
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    const ClassTable table = read_table(counted_, sums);
    std::vector<double> values = internal::rate_values(table, kAllAverages);
    values.insert(values.begin(), balanced_accuracy(table));
    return values;
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    const ClassTable table = read_table(counted_, sums);
    const std::vector<std::string> names =
        internal::row_names(kConfusion, class_names, counted_.num_classes);
    std::vector<MetricTable> tables{
        internal::rate_table("per_class", table, internal::kRates, names)};
    if (counted_.has_matrix) {
      tables.push_back(matrix(sums, names));
    }
    return tables;
  }

 private:
  static MetricTable matrix(
      std::span<const double> sums,
      const std::vector<std::string>& names) {
    MetricTable table{.name = "confusion", .columns = names};
    table.rows.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto row = sums.subspan(i * names.size(), names.size());
      table.rows.push_back(
          {.name = names[i], .values = {row.begin(), row.end()}});
    }
    return table;
  }

  CountedClasses counted_;
};

class SegmentationMetric final : public Metric {
 public:
  SegmentationMetric(
      std::int64_t num_classes,
      const SegmentationOptions& options)
      : counted_{
            .metric = kSegmentation,
            .num_classes = num_classes,
            .ignore_index = options.ignore_index == SegmentationOptions::kUsual
                                ? uncounted_pixel(num_classes)
                                : options.ignore_index} {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return {{.name = "miou"}, {.name = "dice"}, {.name = "pixel_acc"}};
  }

  [[nodiscard]] std::int64_t size() const override {
    return counted_.size();
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kSegmentation, outputs, targets);
    internal::check_shape(
        kSegmentation,
        outputs,
        std::array<std::int64_t, 4>{-1, counted_.num_classes, -1, -1},
        format("[N, {}, H, W]", counted_.num_classes));
    return count_classes(counted_, outputs, targets);
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    const ClassTable table = read_table(counted_, sums);
    return {
        table.mean(&ClassCounts::iou, Average::kMacro),
        table.mean(&ClassCounts::f1, Average::kMacro),
        table.mean(&ClassCounts::recall, Average::kMicro)};
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    constexpr std::array kColumns{
        internal::RateColumn{"iou", &ClassCounts::iou},
        internal::RateColumn{"dice", &ClassCounts::f1},
        internal::RateColumn{"precision", &ClassCounts::precision},
        internal::RateColumn{"recall", &ClassCounts::recall},
    };
    const ClassTable table = read_table(counted_, sums);
    return {internal::rate_table(
        "per_class",
        table,
        kColumns,
        internal::row_names(kSegmentation, class_names, counted_.num_classes))};
  }

 private:
  CountedClasses counted_;
};

} // namespace

std::unique_ptr<Metric> confusion(
    std::int64_t num_classes,
    const ConfusionOptions& options) {
  internal::check_at_least(kConfusion, "num_classes", num_classes, 1);
  internal::check_at_least(
      kConfusion,
      "max_matrix_classes",
      options.max_matrix_classes,
      0);
  return std::make_unique<ConfusionMetric>(num_classes, options);
}

std::unique_ptr<Metric> segmentation_metrics(
    std::int64_t num_classes,
    const SegmentationOptions& options) {
  internal::check_at_least(kSegmentation, "num_classes", num_classes, 1);
  return std::make_unique<SegmentationMetric>(num_classes, options);
}

} // namespace lockstep
