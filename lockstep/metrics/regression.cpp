// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cmath>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/strings.h"
#include "lockstep/metrics/internal/checks.h"
#include "lockstep/metrics/internal/class_rates.h"
#include "lockstep/metrics/internal/counts.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

constexpr std::string_view kRegression = "regression";
// What is left of a difference of two sums of squares that agree in so many
// digits is rounding.
constexpr double kEqualTargets = 1e-13;
// Numbers of a batch that a loop sums in less time than a dozen operators, and
// as exactly.
constexpr std::int64_t kFew = 4096;

// The sums of one column.
struct ColumnSums {
  double count = 0;
  double absolute_errors = 0;
  double squared_errors = 0;
  double targets = 0;
  double squared_targets = 0;

  // Of all targets around their mean.
  [[nodiscard]] double r2() const {
    if (count < 2) {
      return internal::kNotCounted;
    }
    const double spread = squared_targets - targets * targets / count;
    if (spread > kEqualTargets * squared_targets) {
      return 1.0 - squared_errors / spread;
    }
    return std::isnan(spread + squared_errors) ? internal::kNotCounted
           : squared_errors == 0               ? 1.0
                                               : 0.0;
  }

  // In the order of `infos`.
  [[nodiscard]] std::vector<double> errors() const {
    const double mse = internal::share(squared_errors, count);
    return {internal::share(absolute_errors, count), mse, std::sqrt(mse)};
  }
};

// Sums: those of ColumnSums, each by column.
class RegressionMetric final : public Metric {
 public:
  explicit RegressionMetric(std::int64_t num_outputs)
      : num_outputs_(num_outputs) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return {
        {.name = "mae", .better = Better::kLower},
        {.name = "mse", .better = Better::kLower},
        {.name = "rmse", .better = Better::kLower},
        {.name = "r2"}};
  }

  [[nodiscard]] std::int64_t size() const override {
    return 5 * num_outputs_;
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kRegression, outputs, targets);
    if (num_outputs_ > 1) {
      internal::check_shape(
          kRegression,
          outputs,
          std::array<std::int64_t, 2>{-1, num_outputs_},
          format("[N, {}]", num_outputs_));
    }
    internal::check_like_outputs(kRegression, outputs, targets);
    const std::int64_t rows = outputs.numel() / num_outputs_;
    const auto columns_of = [&](const at::Tensor& numbers) {
      return numbers.detach().to(at::kDouble).reshape({rows, num_outputs_});
    };
    if (outputs.is_cpu() && outputs.numel() <= kFew) {
      return sums_of_few(columns_of(outputs), columns_of(targets));
    }
    const at::Tensor wanted = columns_of(targets);
    const at::Tensor errors = columns_of(outputs).sub(wanted);
    return internal::joined_sums(
        {at::full({num_outputs_}, rows, wanted.options()),
         errors.abs().sum(0),
         errors.square().sum(0),
         wanted.sum(0),
         wanted.square().sum(0)});
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    internal::check_sums(kRegression, sums, size());
    ColumnSums all;
    double r2 = 0;
    for (std::size_t i = 0; i < columns(); ++i) {
      const ColumnSums sum = column(sums, i);
      all.count += sum.count;
      all.absolute_errors += sum.absolute_errors;
      all.squared_errors += sum.squared_errors;
      r2 += sum.r2();
    }
    std::vector<double> values = all.errors();
    values.push_back(r2 / static_cast<double>(num_outputs_));
    return values;
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    internal::check_sums(kRegression, sums, size());
    if (num_outputs_ == 1) {
      return {};
    }
    const std::vector<std::string> names =
        internal::row_names(kRegression, class_names, num_outputs_);
    MetricTable table{
        .name = "per_output",
        .columns = {"mae", "mse", "rmse", "r2"}};
    table.rows.reserve(names.size());
    for (std::size_t i = 0; i < columns(); ++i) {
      const ColumnSums sum = column(sums, i);
      MetricRow row{.name = names[i], .values = sum.errors()};
      row.values.push_back(sum.r2());
      table.rows.push_back(std::move(row));
    }
    return {table};
  }

 private:
  // Shape: [rows, num_outputs] float64, both on the CPU.
  [[nodiscard]] at::Tensor sums_of_few(
      const at::Tensor& outputs,
      const at::Tensor& targets) const {
    at::Tensor sums = at::zeros({5, num_outputs_}, at::kDouble);
    auto sum = sums.accessor<double, 2>();
    const auto found = outputs.accessor<double, 2>();
    const auto wanted = targets.accessor<double, 2>();
    for (std::int64_t i = 0; i < found.size(0); ++i) {
      for (std::int64_t c = 0; c < num_outputs_; ++c) {
        const double error = found[i][c] - wanted[i][c];
        sum[0][c] += 1;
        sum[1][c] += std::abs(error);
        sum[2][c] += error * error;
        sum[3][c] += wanted[i][c];
        sum[4][c] += wanted[i][c] * wanted[i][c];
      }
    }
    return sums.flatten();
  }

  [[nodiscard]] std::size_t columns() const {
    return static_cast<std::size_t>(num_outputs_);
  }

  [[nodiscard]] ColumnSums column(std::span<const double> sums, std::size_t i)
      const {
    const std::size_t step = columns();
    return {
        .count = sums[i],
        .absolute_errors = sums[step + i],
        .squared_errors = sums[2 * step + i],
        .targets = sums[3 * step + i],
        .squared_targets = sums[4 * step + i]};
  }

  std::int64_t num_outputs_;
};

} // namespace

std::unique_ptr<Metric> regression_metrics(const RegressionOptions& options) {
  internal::check_at_least(kRegression, "num_outputs", options.num_outputs, 1);
  return std::make_unique<RegressionMetric>(options.num_outputs);
}

} // namespace lockstep
