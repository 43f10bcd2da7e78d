// SPDX-License-Identifier: BSD-3-Clause
//
// A step or an epoch as a row of named numbers: what tables, JSON lines and
// event files write, each in its own form.
//   const MetricRow row = row_of(record);
//   results.append(row.cells(kResultsHeader));   // "1,938,60000,0.52,..."
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// One column of a row.
struct Metric {
  std::string_view name = {};
  /// Nothing: it was not measured.
  std::variant<
      std::monostate,
      bool,
      std::int64_t,
      float,
      double,
      std::string_view>
      value = {};
  /// How a table writes a number that differs from run to run; empty: as the
  /// shortest decimal that restores it.
  std::string_view pattern = {};
};

class MetricRow {
 public:
  explicit MetricRow(std::vector<Metric> metrics)
      : metrics_(std::move(metrics)) {}

  /// The columns that `header` names, "step,epoch,loss", with commas between
  /// them. An empty cell is no number.
  [[nodiscard]] std::string cells(std::string_view header) const;
  /// `{"event": event, "step": 51, ...}`, with null for what was not measured.
  [[nodiscard]] Json to_json(std::string_view event) const;
  /// Nothing if it was not measured. Errors: throws kInternal for a column that
  /// is no number of the row.
  [[nodiscard]] std::optional<double> number(std::string_view name) const;

 private:
  [[nodiscard]] const Metric& find(std::string_view name) const;

  std::vector<Metric> metrics_;
};

MetricRow row_of(const StepRecord& record);
MetricRow row_of(const EpochRecord& record);

} // namespace lockstep::train
