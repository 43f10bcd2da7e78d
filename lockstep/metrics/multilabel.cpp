// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

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

constexpr std::string_view kMultilabel = "multilabel";
constexpr std::array kTwoAverages{Average::kMacro, Average::kMicro};

// Sums: hits, predicted and actual by label; samples with all labels right,
// samples, targets that are neither 0 nor 1.
class MultilabelMetric final : public Metric {
 public:
  MultilabelMetric(std::int64_t num_labels, double threshold)
      : num_labels_(num_labels),
        least_output_(std::log(threshold / (1.0 - threshold))) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    std::vector<MetricInfo> infos = internal::rate_infos(kTwoAverages);
    infos.push_back({.name = "exact_match"});
    return infos;
  }

  [[nodiscard]] std::int64_t size() const override {
    return 3 * num_labels_ + 3;
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kMultilabel, outputs, targets);
    internal::check_shape(
        kMultilabel,
        outputs,
        std::array<std::int64_t, 2>{-1, num_labels_},
        format("[N, {}]", num_labels_));
    internal::check_like_outputs(kMultilabel, outputs, targets);
    const internal::LabelFlags flags = internal::read_flags(targets);
    // In float64: in float16 the threshold itself would be rounded.
    const at::Tensor predicted =
        outputs.detach().to(at::kDouble).gt(least_output_);
    const at::Tensor hits = predicted.logical_and(flags.is_set);
    const at::Tensor is_right = predicted.eq(flags.is_set).all(/*dim=*/1);
    return internal::joined_sums(
        {hits.sum(0, false, at::kDouble),
         predicted.sum(0, false, at::kDouble),
         flags.is_set.sum(0, false, at::kDouble),
         is_right.sum(at::kDouble),
         at::full({}, outputs.size(0), hits.options().dtype(at::kDouble)),
         flags.outside});
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    std::vector<double> values =
        internal::rate_values(read(sums), kTwoAverages);
    const auto rest = sums.last(3);
    values.push_back(internal::share(rest[0], rest[1]));
    return values;
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    return {internal::rate_table(
        "per_label",
        read(sums),
        internal::kRates,
        internal::row_names(kMultilabel, class_names, num_labels_))};
  }

 private:
  [[nodiscard]] ClassTable read(std::span<const double> sums) const {
    internal::check_sums(kMultilabel, sums, size());
    internal::check_outside(kMultilabel, sums.back(), "0 or 1");
    const auto labels = static_cast<std::size_t>(num_labels_);
    const bool has_samples = sums[3 * labels + 1] > 0;
    ClassTable table{.is_averaged = std::vector<bool>(labels, has_samples)};
    table.all.reserve(labels);
    for (std::size_t i = 0; i < labels; ++i) {
      table.all.push_back(
          {.hits = sums[i],
           .predicted = sums[labels + i],
           .actual = sums[2 * labels + i]});
    }
    return table;
  }

  std::int64_t num_labels_;
  // The output whose sigmoid is the threshold.
  double least_output_;
};

} // namespace

std::unique_ptr<Metric> multilabel_metrics(
    std::int64_t num_labels,
    const MultilabelOptions& options) {
  internal::check_at_least(kMultilabel, "num_labels", num_labels, 1);
  if (!(options.threshold > 0 && options.threshold < 1)) {
    internal::refuse_metric_option(
        kMultilabel,
        format(
            "threshold: expected a number above 0 and below 1, got {}",
            options.threshold));
  }
  return std::make_unique<MultilabelMetric>(num_labels, options.threshold);
}

} // namespace lockstep
