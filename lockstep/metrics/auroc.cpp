// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>

#include "lockstep/base/strings.h"
#include "lockstep/metrics/internal/checks.h"
#include "lockstep/metrics/internal/class_rates.h"
#include "lockstep/metrics/internal/counts.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

constexpr std::string_view kAuroc = "auroc";
constexpr std::int64_t kMaxAurocSums = 4'194'304;

// Which samples each curve tells apart, and their scores.
struct Scores {
  // [N, curves] floating: a probability each.
  at::Tensor probabilities = {};
  // [N, curves] bool.
  at::Tensor is_positive = {};
  at::Tensor is_counted = {};
  // [] float64.
  at::Tensor outside = {};
};

// The area under the curve of one class from its samples by threshold: of the
// negatives and of the positives. The curve begins at (0, 0) and ends at (1,
// 1); samples between two thresholds are one straight line of it.
double area_under_curve(
    std::span<const double> negatives,
    std::span<const double> positives) {
  double hits = 0;
  double alarms = 0;
  double area = 0;
  for (std::size_t i = negatives.size(); i-- > 0;) {
    area += negatives[i] * (hits + 0.5 * positives[i]);
    hits += positives[i];
    alarms += negatives[i];
  }
  return internal::share(area, hits * alarms);
}

// Sums: by curve, threshold by threshold, the negatives and then the positives
// whose score is at or above it and below the next; then the counted scores
// that are NaN, then the targets outside of the classes.
class AurocMetric : public Metric {
 public:
  AurocMetric(
      std::int64_t columns,
      std::int64_t curves,
      std::int64_t thresholds)
      : columns_(columns), curves_(curves), thresholds_(thresholds) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return {{.name = std::string(kAuroc)}};
  }

  [[nodiscard]] std::int64_t size() const override {
    return 2 * curves_ * thresholds_ + 2;
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kAuroc, outputs, targets);
    internal::check_shape(
        kAuroc,
        outputs,
        std::array<std::int64_t, 2>{-1, columns_},
        format("[N, {}]", columns_));
    // In float16 many scores would be equal that are not.
    const at::Tensor wide = outputs.scalar_type() == at::kDouble
                                ? outputs.detach()
                                : outputs.detach().to(at::kFloat);
    const Scores scores = read(wide, targets);
    const at::Tensor& probabilities = scores.probabilities;
    const auto options = probabilities.options();
    // torchmetrics' thresholds: float32, whatever the scores are.
    const at::Tensor limits =
        at::linspace(0, 1, thresholds_, options.dtype(at::kFloat))
            .to(probabilities.scalar_type());
    const at::Tensor is_nan = probabilities.isnan();
    const at::Tensor place =
        at::bucketize(probabilities.contiguous(), limits, false, /*right=*/true)
            .sub_(1);
    const at::Tensor row = at::arange(curves_, options.dtype(at::kLong))
                               .mul_(2)
                               .add(scores.is_positive.to(at::kLong));
    return internal::joined_sums(
        {internal::count_each(
             row.mul(thresholds_).add_(place),
             scores.is_counted.logical_and(is_nan.logical_not()),
             2 * curves_ * thresholds_),
         is_nan.logical_and(scores.is_counted).sum(at::kDouble),
         scores.outside});
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    double sum = 0;
    double counted = 0;
    for (const double area : areas(sums)) {
      if (!std::isnan(area)) {
        sum += area;
        ++counted;
      }
    }
    return {internal::share(sum, counted)};
  }

 protected:
  [[nodiscard]] virtual Scores read(
      const at::Tensor& outputs,
      const at::Tensor& targets) const = 0;
  // Throws if targets were outside of the classes.
  virtual void check_targets(double outside) const = 0;

  // One per curve.
  [[nodiscard]] std::vector<double> areas(std::span<const double> sums) const {
    internal::check_sums(kAuroc, sums, size());
    check_targets(sums.back());
    std::vector<double> areas;
    areas.reserve(static_cast<std::size_t>(curves_));
    const bool has_nan = sums[sums.size() - 2] > 0;
    for (std::int64_t i = 0; i < curves_; ++i) {
      areas.push_back(
          has_nan ? internal::kNotCounted
                  : area_under_curve(part(sums, 2 * i), part(sums, 2 * i + 1)));
    }
    return areas;
  }

  // A row per curve: its area and its positives.
  [[nodiscard]] MetricTable table(
      std::string name,
      std::span<const double> sums,
      std::span<const std::string> names) const {
    MetricTable table{.name = std::move(name), .columns = {"auroc", "actual"}};
    const std::vector<double> by_curve = areas(sums);
    table.rows.reserve(by_curve.size());
    for (std::size_t i = 0; i < by_curve.size(); ++i) {
      double positives = 0;
      for (const double count :
           part(sums, 2 * static_cast<std::int64_t>(i) + 1)) {
        positives += count;
      }
      table.rows.push_back(
          {.name = names[i], .values = {by_curve[i], positives}});
    }
    return table;
  }

  [[nodiscard]] std::int64_t columns() const {
    return columns_;
  }

 private:
  [[nodiscard]] std::span<const double> part(
      std::span<const double> sums,
      std::int64_t row) const {
    return sums.subspan(
        static_cast<std::size_t>(row * thresholds_),
        static_cast<std::size_t>(thresholds_));
  }

  std::int64_t columns_;
  std::int64_t curves_;
  std::int64_t thresholds_;
};

class ClassAuroc final : public AurocMetric {
 public:
  ClassAuroc(std::int64_t num_classes, const AurocOptions& options)
      : AurocMetric(
            num_classes,
            num_classes == 2 ? 1 : num_classes,
            options.thresholds),
        ignore_index_(options.ignore_index) {}

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    const std::vector<std::string> names =
        internal::row_names(kAuroc, class_names, columns());
    // The only curve of two classes is that of class 1.
    return {table(
        "per_class",
        sums,
        std::span(names).subspan(columns() == 2 ? 1 : 0))};
  }

 protected:
  [[nodiscard]] Scores read(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    internal::check_labels(kAuroc, outputs, targets);
    const internal::Labels labels =
        internal::read_labels(targets, columns(), ignore_index_);
    const std::int64_t first = columns() == 2 ? 1 : 0;
    const at::Tensor classes =
        at::arange(first, columns(), labels.classes.options());
    const at::Tensor is_positive = labels.classes.unsqueeze(1).eq(classes);
    return {
        .probabilities =
            outputs.softmax(/*dim=*/1).narrow(1, first, columns() - first),
        .is_positive = is_positive,
        .is_counted = labels.is_counted.unsqueeze(1).expand_as(is_positive),
        .outside = labels.outside};
  }

  void check_targets(double outside) const override {
    internal::check_outside(
        kAuroc,
        outside,
        format("0 to {}", columns() - 1),
        ignore_index_);
  }

 private:
  std::optional<std::int64_t> ignore_index_;
};

class LabelAuroc final : public AurocMetric {
 public:
  LabelAuroc(std::int64_t num_labels, const AurocOptions& options)
      : AurocMetric(num_labels, num_labels, options.thresholds) {}

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    return {table(
        "per_label",
        sums,
        internal::row_names(kAuroc, class_names, columns()))};
  }

 protected:
  [[nodiscard]] Scores read(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    internal::check_like_outputs(kAuroc, outputs, targets);
    const internal::LabelFlags flags = internal::read_flags(targets);
    return {
        .probabilities = outputs.sigmoid(),
        .is_positive = flags.is_set,
        .is_counted = at::ones_like(flags.is_set),
        .outside = flags.outside};
  }

  void check_targets(double outside) const override {
    internal::check_outside(kAuroc, outside, "0 or 1");
  }
};

void check_auroc(
    std::string_view field,
    std::int64_t columns,
    std::int64_t least,
    const AurocOptions& options) {
  internal::check_at_least(kAuroc, field, columns, least);
  internal::check_at_least(kAuroc, "thresholds", options.thresholds, 2);
  if (options.thresholds > kMaxAurocSums / 2 / columns) {
    internal::refuse_metric_option(
        kAuroc,
        format(
            "thresholds: expected {} or fewer for {} of {}, got {}",
            kMaxAurocSums / 2 / columns,
            field,
            columns,
            options.thresholds));
  }
}

} // namespace

std::unique_ptr<Metric> auroc(
    std::int64_t num_classes,
    const AurocOptions& options) {
  check_auroc("num_classes", num_classes, 2, options);
  return std::make_unique<ClassAuroc>(num_classes, options);
}

std::unique_ptr<Metric> multilabel_auroc(
    std::int64_t num_labels,
    const AurocOptions& options) {
  check_auroc("num_labels", num_labels, 1, options);
  if (options.ignore_index) {
    internal::refuse_metric_option(
        kAuroc,
        "ignore_index: expected none for several labels");
  }
  return std::make_unique<LabelAuroc>(num_labels, options);
}

} // namespace lockstep
