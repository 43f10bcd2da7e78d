// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/metrics/internal/class_rates.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::internal {
namespace {

std::string_view suffix(Average average) {
  constexpr std::array<std::string_view, 3> kSuffixes{
      "_macro",
      "_micro",
      "_weighted"};
  return kSuffixes[static_cast<std::size_t>(average)];
}

double share_or_zero(double part, double whole) {
  return whole == 0 ? 0.0 : part / whole;
}

} // namespace

double share(double part, double whole) {
  return whole == 0 ? kNotCounted : part / whole;
}

double ClassCounts::precision() const {
  return share_or_zero(hits, predicted);
}

double ClassCounts::recall() const {
  return share_or_zero(hits, actual);
}

double ClassCounts::f1() const {
  return share_or_zero(2 * hits, predicted + actual);
}

double ClassCounts::iou() const {
  return share_or_zero(hits, predicted + actual - hits);
}

ClassCounts ClassTable::total() const {
  ClassCounts sum;
  for (const ClassCounts& counts : all) {
    sum.hits += counts.hits;
    sum.predicted += counts.predicted;
    sum.actual += counts.actual;
  }
  return sum;
}

double ClassTable::mean(ClassRate rate, Average average) const {
  if (average == Average::kMicro) {
    const bool has_any =
        std::ranges::find(is_averaged, true) != is_averaged.end();
    return has_any ? (total().*rate)() : kNotCounted;
  }
  double sum = 0;
  double weights = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_averaged[i]) {
      const double weight = average == Average::kMacro ? 1.0 : all[i].actual;
      sum += weight * (all[i].*rate)();
      weights += weight;
    }
  }
  return share(sum, weights);
}

std::vector<MetricInfo> rate_infos(std::span<const Average> averages) {
  std::vector<MetricInfo> infos;
  infos.reserve(kRates.size() * averages.size());
  for (const RateColumn& column : kRates) {
    for (const Average average : averages) {
      infos.push_back(
          {.name = std::string(column.name).append(suffix(average))});
    }
  }
  return infos;
}

std::vector<double> rate_values(
    const ClassTable& table,
    std::span<const Average> averages) {
  std::vector<double> values;
  values.reserve(kRates.size() * averages.size());
  for (const RateColumn& column : kRates) {
    for (const Average average : averages) {
      values.push_back(table.mean(column.rate, average));
    }
  }
  return values;
}

MetricTable rate_table(
    std::string name,
    const ClassTable& table,
    std::span<const RateColumn> columns,
    std::span<const std::string> row_names) {
  MetricTable out{.name = std::move(name)};
  out.columns.reserve(columns.size() + 2);
  for (const RateColumn& column : columns) {
    out.columns.emplace_back(column.name);
  }
  out.columns.emplace_back("predicted");
  out.columns.emplace_back("actual");
  out.rows.reserve(table.all.size());
  for (std::size_t i = 0; i < table.all.size(); ++i) {
    const ClassCounts& counts = table.all[i];
    MetricRow row{.name = row_names[i]};
    row.values.reserve(out.columns.size());
    for (const RateColumn& column : columns) {
      row.values.push_back(
          table.is_averaged[i] ? (counts.*column.rate)() : kNotCounted);
    }
    row.values.push_back(counts.predicted);
    row.values.push_back(counts.actual);
    out.rows.push_back(std::move(row));
  }
  return out;
}

} // namespace lockstep::internal
