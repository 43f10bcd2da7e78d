// SPDX-License-Identifier: BSD-3-Clause
//
// Tables: rows of numbers, or images with labels or values.
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/images.h"
#include "lockstep/data/internal/array_parts.h"
#include "lockstep/data/internal/csv_file.h"
#include "lockstep/data/internal/csv_targets.h"
#include "lockstep/data/internal/file_parts.h"
#include "lockstep/data/internal/formats.h"

namespace lockstep::internal {
namespace {

constexpr std::array<std::string_view, 1> kTableEndings{".csv"};
// What a first column with paths of images is called.
constexpr std::array<std::string_view, 6>
    kPathColumns{"path", "image", "file", "filename", "image_path", "img"};

bool has_paths(const std::vector<std::string>& columns) {
  return !columns.empty() &&
         std::ranges::find(kPathColumns, lower_case(columns[0])) !=
             kPathColumns.end();
}

// The columns of `--target`, or the usual ones.
std::vector<std::string> target_columns(
    const CsvFile& csv,
    const DatasetOptions& options) {
  if (!options.target.empty()) {
    if (std::ranges::find(csv.columns, options.target) != csv.columns.end()) {
      return {options.target}; // a name with a comma, too
    }
    return split(options.target, ',');
  }
  const auto first =
      has_paths(csv.columns) ? csv.columns.begin() + 1 : csv.columns.end() - 1;
  return {first, csv.columns.end()};
}

void check_tables(const std::vector<CsvFile>& tables) {
  for (const CsvFile& csv : tables) {
    if (csv.columns.size() < 2) {
      bad_csv(
          csv.path,
          1,
          "the table has one column; expected inputs and a target");
    }
    if (csv.rows() == 0) {
      bad_csv(csv.path, 1, "the table has no rows");
    }
    if (csv.columns != tables[0].columns) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "data.csv",
           .message = format(
               "the parts have different columns: {}, and {}",
               some_names(tables[0].columns),
               some_names(csv.columns)),
           .path = csv.path,
           .detail = "E_DATA_SHAPE"});
    }
  }
}

// The columns that are no targets, as numbers.
ArrayElements inputs_of(
    const CsvFile& csv,
    const std::vector<std::string>& targets) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < csv.columns.size(); ++i) {
    if (std::ranges::find(targets, csv.columns[i]) == targets.end()) {
      places.push_back(i);
    }
  }
  auto numbers = std::make_shared<std::vector<float>>();
  numbers->reserve(places.size() * csv.lines.size());
  for (std::int64_t row = 0; row < csv.rows(); ++row) {
    for (const std::size_t at : places) {
      numbers->push_back(number_at(csv, row, at));
    }
  }
  ArrayElements elements{.type = at::kFloat, .shape = {std::ssize(places)}};
  elements.rows.push_back(
      {.owner = numbers,
       .data = std::as_bytes(std::span(*numbers)).data(),
       .count = csv.rows(),
       .stride =
           std::ssize(places) * static_cast<std::int64_t>(sizeof(float))});
  return elements;
}

ArrayElements values_of(std::vector<float> values, std::int64_t each) {
  const auto kept = std::make_shared<std::vector<float>>(std::move(values));
  ArrayElements elements{.type = at::kFloat, .shape = {each}};
  elements.rows.push_back(
      {.owner = kept,
       .data = std::as_bytes(std::span(*kept)).data(),
       .count = std::ssize(*kept) / each,
       .stride = each * static_cast<std::int64_t>(sizeof(float))});
  return elements;
}

DatasetParts open_numbers(
    const std::vector<CsvFile>& tables,
    CsvTargets targets,
    const DatasetOptions& options) {
  if (targets.columns.size() == tables[0].columns.size()) {
    bad_csv(tables[0].path, 1, "all columns are targets");
  }
  std::vector<ArrayPart> parts;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    CsvPartTargets& of_part = targets.parts[i];
    ArrayPart part{
        .inputs = inputs_of(tables[i], targets.columns),
        .classes = std::move(of_part.classes),
        .file = tables[i].path};
    if (!targets.are_classes) {
      const std::int64_t each = std::ssize(targets.columns);
      part.targets = values_of(std::move(of_part.values), each);
      part.target = {.kind = TargetKind::kValues, .shape = {each}};
    }
    parts.push_back(std::move(part));
  }
  ArrayNames names{.values = targets.columns};
  if (targets.are_classes) {
    names.classes = targets.class_names;
    for (std::int64_t i = std::ssize(names.classes); i < targets.num_classes;
         ++i) {
      names.classes.push_back(format("{}", i));
    }
  }
  DatasetParts made = array_parts(std::move(parts), options, names);
  made.notes.insert(
      made.notes.begin(),
      targets.notes.begin(),
      targets.notes.end());
  return made;
}

FileSamples
images_of(const CsvFile& csv, CsvPartTargets part, const CsvTargets& targets) {
  FileSamples samples{
      .classes = std::move(part.classes),
      .values = std::move(part.values),
      .num_classes = targets.num_classes,
      .names = targets.are_classes ? targets.class_names : targets.columns,
      .values_each = targets.are_classes ? 0 : std::ssize(targets.columns)};
  const std::string folder = parent_directory(csv.path);
  for (std::int64_t row = 0; row < csv.rows(); ++row) {
    const std::string& path = csv.cell(row, 0);
    if (path.empty()) {
      bad_csv(
          csv.path,
          csv.lines[static_cast<std::size_t>(row)],
          "there is no path of an image");
    }
    samples.images.push_back(
        path.starts_with('/') ? path : format("{}/{}", folder, path));
  }
  return samples;
}

} // namespace

bool holds_csv(const std::string& path, FileSystem& fs) {
  return !part_files(fs, path, kTableEndings).train.empty();
}

bool holds_image_csv(const std::string& path, FileSystem& fs) {
  const PartFiles files = part_files(fs, path, kTableEndings);
  return !files.train.empty() && has_paths(csv_columns(fs, files.train));
}

DatasetParts open_csv(const std::string& path, const DatasetOptions& options) {
  FileSystem& fs = real_fs();
  const PartFiles files = part_files(fs, path, kTableEndings);
  if (files.train.empty()) {
    no_such_data(
        "there is no table, or there are several",
        path,
        "expected FILE.csv, or a folder with one, or with train.csv and "
        "val.csv");
  }
  std::vector<CsvFile> tables{read_csv(fs, files.train)};
  if (!files.val.empty()) {
    tables.push_back(read_csv(fs, files.val));
  }
  check_tables(tables);
  CsvTargets targets =
      read_csv_targets(tables, target_columns(tables[0], options), options);
  if (!has_paths(tables[0].columns)) {
    return open_numbers(tables, std::move(targets), options);
  }
  std::vector<FileSamples> parts;
  parts.reserve(tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    parts.push_back(images_of(tables[i], std::move(targets.parts[i]), targets));
  }
  DatasetParts made =
      file_parts(std::move(parts), parent_directory(files.train), options);
  made.notes.insert(
      made.notes.begin(),
      targets.notes.begin(),
      targets.notes.end());
  return made;
}

} // namespace lockstep::internal
