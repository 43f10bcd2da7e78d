// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/csv_targets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/labels.h"

namespace lockstep::internal {
namespace {

// What all cells of a column are.
enum class Cells { kWhole, kNumbers, kTexts };

Cells cells_of(const std::string& cell) {
  return parse_number<std::int64_t>(cell) ? Cells::kWhole
         : parse_number<double>(cell)     ? Cells::kNumbers
                                          : Cells::kTexts;
}

std::string what_they_are(Cells kind) {
  return kind == Cells::kTexts     ? "texts"
         : kind == Cells::kNumbers ? "numbers with a point"
                                   : "whole numbers";
}

void check_there(const CsvFile& csv, std::int64_t row, std::size_t column) {
  if (csv.cell(row, column).empty()) {
    bad_csv(
        csv.path,
        csv.lines[static_cast<std::size_t>(row)],
        format("there is no '{}'", escape(csv.columns[column])),
        "fill the cell in, or leave the line out");
  }
}

Cells cells_of(const std::vector<CsvFile>& tables, const std::string& column) {
  Cells kind = Cells::kWhole;
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, column);
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      check_there(csv, row, at);
      kind = std::max(kind, cells_of(csv.cell(row, at)));
    }
  }
  return kind;
}

// "1.5", and "1,5" as tables of some countries have it.
bool is_like_number(std::string cell) {
  const auto comma = cell.find(',');
  if (comma != std::string::npos) {
    cell[comma] = '.';
  }
  return parse_number<double>(cell).has_value();
}

// What tables have where nothing is known.
bool is_missing(const std::string& cell) {
  constexpr std::array<std::string_view, 9>
      kMarks{"-", "--", "?", "n/a", "#n/a", "na", "nan", "null", "none"};
  return std::ranges::find(kMarks, lower_case(cell)) != kMarks.end();
}

// A column of numbers with a slip of the pen is no column of names.
// Errors: throws kCorrupt (E_CSV) for texts most of which are like numbers, and
// for numbers and marks of what is missing.
void refuse_numbers_as_names(
    const std::vector<CsvFile>& tables,
    const std::string& column) {
  std::int64_t numbers = 0;
  std::int64_t missing = 0;
  std::int64_t rows = 0;
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, column);
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      const std::string& cell = csv.cell(row, at);
      missing += is_missing(cell) ? 1 : 0;
      numbers += !is_missing(cell) && is_like_number(cell) ? 1 : 0;
    }
    rows += csv.rows();
  }
  const bool has_only_gaps = numbers > 0 && numbers + missing == rows;
  if (2 * numbers <= rows && !has_only_gaps) {
    return;
  }
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, column);
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      const std::string& cell = csv.cell(row, at);
      if (cells_of(cell) == Cells::kTexts) {
        bad_csv(
            csv.path,
            csv.lines[static_cast<std::size_t>(row)],
            format(
                "'{}' is '{}', and {} of {} rows have numbers there",
                escape(column),
                escape(cell),
                numbers,
                rows),
            "write a number, with a point and not a comma; if all are names of "
            "classes: --task classification");
      }
    }
  }
}

// Numbers or names that hardly more than two rows share are no classes.
// Errors: throws kCorrupt (E_CSV).
void refuse_ids_as_classes(
    const std::vector<CsvFile>& tables,
    const std::string& column,
    Cells kind) {
  constexpr std::int64_t kFew = 8; // so many may be classes of a few rows each
  std::set<std::string> different;
  std::int64_t rows = 0;
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, column);
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      different.insert(csv.cell(row, at));
    }
    rows += csv.rows();
  }
  const std::int64_t names = std::ssize(different);
  if (names <= kFew || 3 * names <= rows) {
    return;
  }
  const std::string columns =
      kind == Cells::kTexts
          ? "--target names another column"
          : "--task regression takes the numbers as values, --target names "
            "another column";
  bad_csv(
      tables[0].path,
      1,
      format(
          "'{}' has {} different {} in {} rows: no classes, it seems",
          escape(column),
          names,
          what_they_are(kind),
          rows),
      columns + "; if they are classes: --task classification");
}

// Texts as classes: of all tables, sorted.
void read_texts(const std::vector<CsvFile>& tables, CsvTargets& targets) {
  std::set<std::string> names;
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, targets.columns[0]);
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      names.insert(csv.cell(row, at));
    }
  }
  targets.class_names.assign(names.begin(), names.end());
  targets.num_classes = std::ssize(targets.class_names);
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, targets.columns[0]);
    CsvPartTargets part;
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      const auto place =
          std::ranges::lower_bound(targets.class_names, csv.cell(row, at));
      part.classes.push_back(place - targets.class_names.begin());
    }
    targets.parts.push_back(std::move(part));
  }
}

void read_numbers_as_classes(
    const std::vector<CsvFile>& tables,
    CsvTargets& targets) {
  for (const CsvFile& csv : tables) {
    const std::size_t at = column_at(csv, targets.columns[0]);
    CsvPartTargets part;
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      part.classes.push_back(
          parse_number<std::int64_t>(csv.cell(row, at)).value_or(0));
    }
    targets.parts.push_back(std::move(part));
  }
  std::vector<PartLabels> labels;
  labels.reserve(tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    labels.push_back(
        {.labels = targets.parts[i].classes, .file = tables[i].path});
  }
  Classes classes = count_classes(labels);
  targets.num_classes = classes.count;
  targets.class_names = std::move(classes.names);
  targets.notes = std::move(classes.notes);
}

void read_values(const std::vector<CsvFile>& tables, CsvTargets& targets) {
  for (const CsvFile& csv : tables) {
    std::vector<std::size_t> places;
    places.reserve(targets.columns.size());
    for (const std::string& column : targets.columns) {
      places.push_back(column_at(csv, column));
    }
    CsvPartTargets part;
    for (std::int64_t row = 0; row < csv.rows(); ++row) {
      for (const std::size_t at : places) {
        part.values.push_back(number_at(csv, row, at));
      }
    }
    targets.parts.push_back(std::move(part));
  }
}

} // namespace

std::size_t column_at(const CsvFile& csv, const std::string& name) {
  const auto found = std::ranges::find(csv.columns, name);
  if (found == csv.columns.end()) {
    const std::string near = nearest(name, csv.columns);
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.csv",
         .message = format(
             "there is no column '{}'; the columns are {}",
             escape(name),
             some_names(csv.columns)),
         .hint = near.empty() ? "" : format("did you mean {}?", near),
         .path = csv.path,
         .detail = "E_DATA_OPTION"});
  }
  return static_cast<std::size_t>(found - csv.columns.begin());
}

float number_at(const CsvFile& csv, std::int64_t row, std::size_t column) {
  check_there(csv, row, column);
  const std::string& cell = csv.cell(row, column);
  const auto number = parse_number<float>(cell);
  if (!number || !std::isfinite(*number)) {
    bad_csv(
        csv.path,
        csv.lines[static_cast<std::size_t>(row)],
        format(
            "'{}' is '{}', which is no number",
            escape(csv.columns[column]),
            escape(cell)),
        has_image_ending(cell)
            ? "a first column with paths of images is called path, image, "
              "file, filename, image_path or img"
            : "leave the column out, or write numbers for its texts");
  }
  return *number;
}

CsvTargets read_csv_targets(
    const std::vector<CsvFile>& tables,
    std::vector<std::string> columns,
    const DatasetOptions& options) {
  CsvTargets targets{.columns = std::move(columns)};
  const std::string& first = targets.columns[0];
  const Cells kind = cells_of(tables, first);
  const bool is_alone = targets.columns.size() == 1;
  if (options.targets == TargetKind::kClasses && !is_alone) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.csv",
         .message = format(
             "classes are one column, not {}",
             some_names(targets.columns)),
         .hint = "--target NAME",
         .path = tables[0].path,
         .detail = "E_DATA_OPTION"});
  }
  const bool is_rule = options.targets == TargetKind::kNone;
  if (is_rule && is_alone && kind == Cells::kTexts) {
    refuse_numbers_as_names(tables, first);
  }
  if (is_rule && is_alone && kind != Cells::kNumbers) {
    refuse_ids_as_classes(tables, first, kind);
  }
  targets.are_classes = options.targets == TargetKind::kClasses ||
                        (is_rule && is_alone && kind != Cells::kNumbers);
  if (!targets.are_classes) {
    read_values(tables, targets);
  } else if (kind == Cells::kWhole) {
    read_numbers_as_classes(tables, targets);
  } else {
    read_texts(tables, targets);
  }
  targets.notes.insert(
      targets.notes.begin(),
      targets.are_classes
          ? format(
                "column '{}' has {}: {} classes",
                escape(first),
                what_they_are(kind),
                targets.num_classes)
          : format("values to predict: {}", some_names(targets.columns)));
  return targets;
}

} // namespace lockstep::internal
