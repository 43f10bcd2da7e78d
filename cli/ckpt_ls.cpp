// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt ls FILE`: the tensors, one line each.
#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/listing_args.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kShownName = 200;
constexpr std::size_t kShownLocation = 20;

Json tensor_row(const ckpt::ListRow& row) {
  Json json = ckpt::tensor_json(row.tensor);
  json.set("name", row.name).set("bytes", row.bytes);
  return json;
}

using Cells = std::vector<std::string>;

// How the table looks; the format is `Checkpoint::format`.
struct TableStyle {
  std::string_view format = {};
  bool is_long = false;
};

Cells cells_of(const ckpt::ListRow& row, const TableStyle& style) {
  const ckpt::Tensor& tensor = row.tensor;
  Cells cells{
      escape(row.name, kShownName) + " ",
      format("{:<8}", ckpt::dtype_info(tensor.dtype).name) + " ",
      ckpt::shape_text(tensor) + " "};
  if (style.is_long) {
    cells.push_back(ckpt::shape_text({.sizes = tensor.strides}) + " ");
    cells.push_back(human_bytes(row.bytes) + " ");
  }
  cells.push_back(padded(storage_text(style.format, tensor), 9));
  return cells;
}

// Columns as wide as their widest cell; what follows them is not padded.
std::string table_text(
    const std::vector<ckpt::ListRow>& rows,
    const TableStyle& style) {
  std::vector<Cells> table;
  std::array<int, 6> widths{};
  for (const ckpt::ListRow& row : rows) {
    table.push_back(cells_of(row, style));
    for (std::size_t i = 0; i < table.back().size(); ++i) {
      widths.at(i) = std::max(widths.at(i), display_width(table.back()[i]));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < table[r].size(); ++i) {
      text += padded(table[r][i], widths.at(i)) + " ";
    }
    const ckpt::Tensor& tensor = rows[r].tensor;
    text += escape(tensor.storage->location, kShownLocation) +
            flags_text(tensor) + "\n";
  }
  return text;
}

std::string row_names(const std::vector<ckpt::ListRow>& rows) {
  std::string text;
  for (const ckpt::ListRow& row : rows) {
    text += escape(row.name, std::string::npos) + "\n";
  }
  return text;
}

// Names cut to their first parts, in file order.
std::vector<ckpt::TreeRow> folded(
    const std::vector<ckpt::ListRow>& rows,
    std::size_t depth) {
  std::vector<ckpt::TreeRow> groups = ckpt::tree_rows(rows, depth);
  std::erase_if(groups, [depth](const ckpt::TreeRow& row) {
    return row.level + 1 < depth && row.tensor == nullptr;
  });
  return groups;
}

std::string groups_text(const std::vector<ckpt::TreeRow>& groups) {
  int width = 0;
  for (const ckpt::TreeRow& row : groups) {
    width = std::max(width, display_width(escape(row.path, kShownName)));
  }
  std::string text;
  for (const ckpt::TreeRow& row : groups) {
    text += format(
        "{}  {:>12}  {:>10}\n",
        padded(escape(row.path, kShownName), width),
        counted(row.tensors, "tensor"),
        human_bytes(row.bytes));
  }
  return text;
}

Result<int> run_ls(const ListArgs& args, const Common& common) {
  constexpr const char* kLsSchema = "lockstep.ckpt.ls/1";
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  LOCKSTEP_ASSIGN(const auto rows, list_rows(file, args));
  if (args.names_only && !common.json) {
    print_list(file, row_names(rows));
    return 0;
  }
  const bool is_folded = args.depth != 0;
  const auto groups =
      is_folded ? folded(rows, args.depth) : std::vector<ckpt::TreeRow>();
  if (common.json) {
    Json json = Json::object();
    is_folded ? json.set("groups", Json::array(groups, group_json))
              : json.set("tensors", Json::array(rows, tensor_row));
    print_result(
        kLsSchema,
        with_warnings(std::move(json), warning_lines(file)));
    return 0;
  }
  print_list(
      file,
      is_folded ? groups_text(groups)
                : table_text(rows, {file.format, args.is_long}));
  return 0;
}

} // namespace

Runner setup_ls(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ListArgs>();
  add_listing(app, *args);
  app.add_flag("--names", args->names_only, "print the names only");
  return [args, &common] { return run_ls(*args, common); };
}

} // namespace lockstep::cli
