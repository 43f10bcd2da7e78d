// SPDX-License-Identifier: BSD-3-Clause
//
// A step or an epoch as a row of named numbers: what tables and JSON lines
// write, each in its own form.
//   const RecordRow row = row_of(record);
//   results.append(row.cells(header)); // "1,938,60000,0.52,..."
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// One column of a row.
struct Cell {
  std::string name = {};
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

class RecordRow {
 public:
  explicit RecordRow(std::vector<Cell> cells) : cells_(std::move(cells)) {}

  /// The columns that `header` names, "step,epoch,loss", with commas between
  /// them. What was not measured is an empty cell.
  [[nodiscard]] std::string cells(std::string_view header) const;
  /// `{"event": event, "step": 51, ...}`, with null for what was not measured.
  [[nodiscard]] Json to_json(std::string_view event) const;

 private:
  std::vector<Cell> cells_;
};

/// The columns of results.csv in a run that measures so.
std::string results_header(
    std::span<const MetricInfo> train,
    std::span<const MetricInfo> test);

RecordRow row_of(const StepRecord& record);
RecordRow row_of(const EpochRecord& record);

} // namespace lockstep::train
