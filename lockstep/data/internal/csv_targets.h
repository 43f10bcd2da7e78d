// SPDX-License-Identifier: BSD-3-Clause
//
// Which columns of tables are targets, and what they are: classes or values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/internal/csv_file.h"
#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// The targets of the rows of one table.
struct CsvPartTargets {
  std::vector<std::int64_t> classes = {};
  /// `CsvTargets::columns` of each row.
  std::vector<float> values = {};
};

/// What the targets of all tables are.
struct CsvTargets {
  std::vector<std::string> columns = {};
  bool are_classes = false;
  std::int64_t num_classes = 0;
  /// Of the classes; empty for numbers from 0 on.
  std::vector<std::string> class_names = {};
  std::vector<std::string> notes = {};
  /// As many as there are tables.
  std::vector<CsvPartTargets> parts = {};
};

/// One column of targets: whole numbers are classes, other numbers values, and
/// texts classes, sorted by name. Several columns: values.
/// `options.targets` decides otherwise.
/// Errors: throws kInvalidArgument (E_DATA_OPTION) for a column that is not
/// there, kCorrupt (E_CSV) for a cell that is empty or no number, and for a
/// text in a column where most rows have numbers; kMismatch (E_LABEL) for wrong
/// labels.
CsvTargets read_csv_targets(
    const std::vector<CsvFile>& tables,
    std::vector<std::string> columns,
    const DatasetOptions& options);

/// Where the column is. Errors: throws kInvalidArgument (E_DATA_OPTION).
std::size_t column_at(const CsvFile& csv, const std::string& name);

/// The number in a cell. Errors: throws kCorrupt (E_CSV) for an empty cell, for
/// a text, and for a number that is not finite.
float number_at(const CsvFile& csv, std::int64_t row, std::size_t column);

} // namespace lockstep::internal
