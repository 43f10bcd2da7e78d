// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt tree FILE`: the tensors as a tree of their names' parts.
#include <algorithm>
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

constexpr std::size_t kShownLabel = 100;
constexpr std::size_t kIndent = 2;

bool is_leaf(const ckpt::TreeRow& row) {
  return row.tensor != nullptr && row.tensors == 1;
}

std::string label_text(const ckpt::TreeRow& row) {
  return std::string(kIndent * row.level, ' ') + escape(row.label, kShownLabel);
}

std::string long_text(
    std::string_view file_format,
    const ckpt::Tensor& tensor) {
  return format(
      "  {}  {}{}",
      storage_text(file_format, tensor),
      escape(tensor.storage->location, 20),
      flags_text(tensor));
}

std::string tree_rows_text(
    const std::vector<ckpt::TreeRow>& rows,
    std::string_view file_format,
    bool is_long) {
  int width = 0;
  for (const ckpt::TreeRow& row : rows) {
    width = std::max(width, display_width(label_text(row)));
  }
  std::string text;
  for (const ckpt::TreeRow& row : rows) {
    text += padded(label_text(row), width) + "  ";
    if (is_leaf(row)) {
      text += ckpt::describe(*row.tensor);
      text += is_long ? long_text(file_format, *row.tensor) : "";
    } else {
      text += format(
          "{}, {}",
          counted(row.tensors, "tensor"),
          human_bytes(row.bytes));
    }
    text += "\n";
  }
  return text;
}

Json tree_row_json(const ckpt::TreeRow& row) {
  Json json = group_json(row);
  json.set("label", row.label)
      .set("level", row.level)
      .set("tensor", is_leaf(row) ? ckpt::tensor_json(*row.tensor) : Json());
  return json;
}

Result<int> run_tree(const ListArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  LOCKSTEP_ASSIGN(const auto tensors, list_rows(file, args));
  const auto rows = ckpt::tree_rows(tensors, args.depth);
  if (common.json) {
    print_result(
        "lockstep.ckpt.tree/1",
        with_warnings(
            Json::object().set("rows", Json::array(rows, tree_row_json)),
            warning_lines(file)));
  } else {
    print_list(file, tree_rows_text(rows, file.format, args.is_long));
  }
  return 0;
}

} // namespace

Runner setup_tree(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ListArgs>();
  add_listing(app, *args);
  return [args, &common] { return run_tree(*args, common); };
}

} // namespace lockstep::cli
