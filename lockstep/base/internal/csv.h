// SPDX-License-Identifier: BSD-3-Clause
//
// Reads tables of numbers with a header line: results.csv of a run.
//   const CsvTable table(text);
//   const std::vector<double> losses = table.column("val_loss");
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Columns of a table by their names. Fields have no quotes; a last line
/// without a line feed is half written, and left out.
class CsvTable {
 public:
  explicit CsvTable(std::string_view text);

  /// The numbers of a column, from top to bottom. Rows of another width than
  /// the header, and fields that are no numbers, are left out; a column that is
  /// not there is empty.
  [[nodiscard]] std::vector<double> column(std::string_view name) const;

  /// The same with one entry for each row, also for those without a number.
  [[nodiscard]] std::vector<std::optional<double>> cells(
      std::string_view name) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

} // namespace lockstep
