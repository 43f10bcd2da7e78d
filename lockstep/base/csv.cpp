// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/csv.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/strings.h"

namespace lockstep {

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = end == text.data() + text.size();
  return status == std::errc() && is_all ? std::optional(value) : std::nullopt;
}

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
    const auto value = is_whole ? parse_number(rows_[row][at]) : std::nullopt;
    if (value) {
      values.push_back(*value);
    }
  }
  return values;
}

} // namespace lockstep
