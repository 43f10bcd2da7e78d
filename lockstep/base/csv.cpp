// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/csv.h"

#include <algorithm>

#include "lockstep/base/numbers.h"
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
  if (rows_.empty()) {
    return values;
  }
  const auto& names = rows_.front();
  const auto at =
      static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    const bool is_whole =
        at < names.size() && rows_[row].size() == names.size();
    const auto value =
        is_whole ? parse_number<double>(rows_[row][at]) : std::nullopt;
    if (value) {
      values.push_back(*value);
    }
  }
  return values;
}

} // namespace lockstep
