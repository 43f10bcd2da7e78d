// SPDX-License-Identifier: BSD-3-Clause
//
// From counts per class to precision, recall, F1, IoU and their means.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/metrics/metric.h"

namespace lockstep::internal {

constexpr double kNotCounted = std::numeric_limits<double>::quiet_NaN();

/// `part` of `whole`; NaN if `whole` is 0.
double share(double part, double whole);

/// How often one class was predicted, was the target, and was both.
struct ClassCounts {
  double hits = 0;
  double predicted = 0;
  double actual = 0;

  [[nodiscard]] bool occurs() const {
    return predicted + actual > 0;
  }
  // Of a class without predictions, or without targets, they are 0.
  [[nodiscard]] double precision() const;
  [[nodiscard]] double recall() const;
  [[nodiscard]] double f1() const;
  [[nodiscard]] double iou() const;
};

using ClassRate = double (ClassCounts::*)() const;

/// How classes become one number.
enum class Average { kMacro, kMicro, kWeighted };

/// The counts of all classes and those of them that means are taken over.
struct ClassTable {
  std::vector<ClassCounts> all = {};
  /// By class: takes part in _macro and _weighted.
  std::vector<bool> is_averaged = {};

  /// The sums over all classes.
  [[nodiscard]] ClassCounts total() const;
  /// NaN if there is nothing to average.
  [[nodiscard]] double mean(ClassRate rate, Average average) const;
};

/// A rate by its name.
struct RateColumn {
  std::string_view name = {};
  ClassRate rate = nullptr;
};

constexpr std::array kRates{
    RateColumn{"f1", &ClassCounts::f1},
    RateColumn{"precision", &ClassCounts::precision},
    RateColumn{"recall", &ClassCounts::recall},
};

/// `kRates` with each of `averages`: "f1_macro".
std::vector<MetricInfo> rate_infos(std::span<const Average> averages);
/// In the order of `rate_infos`.
std::vector<double> rate_values(
    const ClassTable& table,
    std::span<const Average> averages);

/// The columns, then "predicted" and "actual". Rates are NaN where
/// `is_averaged` is not set.
MetricTable rate_table(
    std::string name,
    const ClassTable& table,
    std::span<const RateColumn> columns,
    std::span<const std::string> row_names);

} // namespace lockstep::internal
