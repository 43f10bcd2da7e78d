// SPDX-License-Identifier: BSD-3-Clause
//
// Tables in text files, with quotes: RFC 4180.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::internal {

/// A table of text. Every row has as many cells as there are columns.
struct CsvFile {
  std::string path = {};
  std::vector<std::string> columns = {};
  /// One after the other, row by row.
  std::vector<std::string> cells = {};
  /// The line of the file at which each row begins, from 1.
  std::vector<std::int64_t> lines = {};

  [[nodiscard]] std::int64_t rows() const {
    return std::ssize(lines);
  }
  [[nodiscard]] const std::string& cell(std::int64_t row, std::size_t column)
      const {
    return cells[static_cast<std::size_t>(row) * columns.size() + column];
  }
};

/// Reads a table with names of columns in its first line. Cells are divided by
/// commas; by semicolons or tabs if the first line has no comma. Empty lines
/// are passed over, blanks around cells without quotes and a byte order mark
/// left out.
/// Errors: throws kNotFound, kIo; kCorrupt (E_CSV) for a row with another
/// number of cells, a quote that is not closed, a first line of numbers only, a
/// name that two columns have, and for a file that is no text.
CsvFile read_csv(FileSystem& fs, const std::string& path);

/// The names of the columns alone; empty if the file cannot be read.
std::vector<std::string> csv_columns(FileSystem& fs, const std::string& path);

/// Errors: throws kCorrupt (E_CSV) that tells path and line.
[[noreturn]] void bad_csv(
    const std::string& path,
    std::int64_t line,
    const std::string& message,
    std::string hint = {});

} // namespace lockstep::internal
