// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/csv.h"

#include <algorithm>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep {

CsvTable::CsvTable(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back(); // after the last line feed
  for (const std::string& line : lines) {
    rows_.push_back(split(line, ','));
  }
}

std::vector<double> CsvTable::column(std::string_view name) const {
  std::vector<double> values;
  for (const std::optional<double>& cell : cells(name)) {
    if (cell) {
      values.push_back(*cell);
    }
  }
  return values;
}

std::vector<std::optional<double>> CsvTable::cells(
    std::string_view name) const {
  std::vector<std::optional<double>> values;
  if (rows_.empty()) {
    return values;
  }
  const auto& names = rows_.front();
  const auto at =
      static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    const bool is_whole =
        at < names.size() && rows_[row].size() == names.size();
    values.push_back(
        is_whole ? parse_number<double>(rows_[row][at]) : std::nullopt);
  }
  return values;
}

} // namespace lockstep
