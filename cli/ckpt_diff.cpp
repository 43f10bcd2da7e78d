// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt diff A B`: which tensors differ, and by how much.
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/color.h"
#include "cli/command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/usage_errors.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"

namespace lockstep::cli {
namespace {

struct DiffArgs {
  std::string a = {};
  std::string b = {};
  double rtol = 0;
  double atol = 0;
  std::vector<std::string> maps = {};
  bool weights = false;
  bool ignore_dtype = false;
};

using ckpt::DiffKind;
using ckpt::DiffRow;

Result<ckpt::DiffOptions> options_of(
    const DiffArgs& args,
    const Common& common) {
  ckpt::DiffOptions options{
      .rtol = args.rtol,
      .atol = args.atol,
      .ignore_dtype = args.ignore_dtype,
      .limits = common.load.limits};
  for (const std::string& map : args.maps) {
    const std::size_t equals = map.find('=');
    if (equals == std::string::npos || equals == 0) {
      return usage_error(
          format("--map; expected 'FROM=TO', got '{}'", escape(map)),
          "--map 'module.=' removes 'module.' from names");
    }
    options.maps.emplace_back(map.substr(0, equals), map.substr(equals + 1));
  }
  return options;
}

bool has_numbers(const DiffRow& row) {
  return row.kind == DiffKind::kValues || row.kind == DiffKind::kDType;
}

Json row_json(const DiffRow& row) {
  Json json = Json::object();
  json.set("kind", ckpt::diff_kind_name(row.kind))
      .set("name", row.name)
      .set("a", row.a)
      .set("b", row.b);
  if (has_numbers(row)) {
    json.set("different", row.different)
        .set("elements", row.elements)
        .set("max_abs", row.max_abs)
        .set("max_rel", row.max_rel);
  }
  if (row.different != 0) {
    json.set(
        "first",
        Json::object()
            .set("index", row.first)
            .set("a", element_json(row.first_a))
            .set("b", element_json(row.first_b)));
  }
  return json;
}

// Of two programs.
bool differs(const ckpt::DiffReport& report, const std::string& graph) {
  return !report.rows.empty() || !graph.empty();
}

Json diff_json(const ckpt::DiffReport& report, const std::string& graph) {
  Json json = Json::object();
  json.set("equal", !differs(report, graph))
      .set("compared", report.compared)
      .set("same", report.equal)
      .set("differences", Json::array(report.rows, row_json))
      .set("map_hint", report.map_hint);
  std::vector<std::string> not_compared = report.unread;
  std::ranges::copy(report.without_bytes, std::back_inserter(not_compared));
  if (!not_compared.empty()) {
    json.set("not_compared", Json::array(not_compared));
  }
  if (!graph.empty()) {
    json.set("graph", graph);
  }
  return json;
}

// Four digits are enough to compare rows.
std::string short_difference(double number) {
  return format("{:>9}", format("{:.4g}", number));
}

/// After the kind: name, types, how many elements differ, how much, the first.
constexpr std::size_t kDiffCells = 6;
using DiffCells = std::array<std::string, kDiffCells>;

// Columns behind the name are empty where a row has nothing to say.
DiffCells diff_cells(const DiffRow& row) {
  DiffCells cells;
  auto& [name, types, count, largest, relative, first] = cells;
  name = escape(row.name, 200);
  if (row.kind == DiffKind::kOnlyA || row.kind == DiffKind::kOnlyB) {
    types = row.a + row.b;
    return cells;
  }
  if (row.a != row.b) {
    types = format("{} and {}", row.a, row.b);
  }
  if (!has_numbers(row)) {
    return cells;
  }
  if (row.elements == 0) {
    return cells;
  }
  if (row.different == 0) {
    count = format("equal values, {}", counted(row.elements, "element"));
    return cells;
  }
  count = format(
      "{} of {} differ",
      with_commas(row.different),
      with_commas(row.elements));
  largest = "largest " + short_difference(row.max_abs);
  relative = "relative " + short_difference(row.max_rel);
  first = format("first [{}]: {} and {}", row.first, row.first_a, row.first_b);
  return cells;
}

std::string kind_text(DiffKind kind, bool color) {
  const Tone tone = kind == DiffKind::kOnlyB   ? Tone::kGood
                    : kind == DiffKind::kOnlyA ? Tone::kBad
                                               : Tone::kDoubtful;
  return paint(format("{:<9}", ckpt::diff_kind_name(kind)), tone, color);
}

// Columns as wide as their widest cell; the last one of a row is not padded.
std::string diff_rows_text(const std::vector<DiffRow>& rows, bool color) {
  std::vector<DiffCells> table;
  table.reserve(rows.size());
  std::array<int, kDiffCells> widths{};
  for (const DiffRow& row : rows) {
    table.push_back(diff_cells(row));
    for (std::size_t i = 0; i < kDiffCells; ++i) {
      widths.at(i) = std::max(widths.at(i), display_width(table.back().at(i)));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = kind_text(rows[r].kind, color);
    for (std::size_t i = 0; i < kDiffCells; ++i) {
      line +=
          widths.at(i) == 0 ? "" : "  " + padded(table[r].at(i), widths.at(i));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string diff_text(
    const ckpt::DiffReport& report,
    const std::string& graph,
    bool color) {
  std::string text;
  if (!graph.empty()) {
    text +=
        format("{}  {}\n", paint("graph    ", Tone::kDoubtful, color), graph);
  }
  text += diff_rows_text(report.rows, color);
  text += report.rows.empty()
              ? format("equal: {}", counted(report.equal, "tensor"))
              : format("{} differ, {} equal", report.rows.size(), report.equal);
  if (!report.unread.empty()) {
    text += format(
        "; not compared: {}, {}",
        counted(report.unread.size(), "array"),
        some_names(report.unread));
  }
  if (!report.without_bytes.empty()) {
    text += format(
        "; without bytes, so not compared: {}, {}",
        counted(report.without_bytes.size(), "tensor"),
        some_names(report.without_bytes));
  }
  text += "\n";
  if (!report.map_hint.empty()) {
    text += format(
        "hint: the names differ by a prefix; add --map '{}'\n",
        escape(report.map_hint));
  }
  return text;
}

ckpt::Value compared_part(const ckpt::Checkpoint& file, const DiffArgs& args) {
  return args.weights ? ckpt::locate_weights(file.root).value : file.root;
}

Result<int> run_diff(const DiffArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const ckpt::DiffOptions options, options_of(args, common));
  LOCKSTEP_ASSIGN(const Input input_a, Input::open(args.a));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint a, input_a.load(common.load));
  LOCKSTEP_ASSIGN(const Input input_b, Input::open(args.b));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint b, input_b.load(common.load));
  LOCKSTEP_ASSIGN(
      const ckpt::DiffReport report,
      ckpt::diff(compared_part(a, args), compared_part(b, args), options));
  const std::string graph = ckpt::graph_difference(a, b);
  std::vector<std::string> warnings = warning_lines(a, args.a);
  std::ranges::copy(warning_lines(b, args.b), std::back_inserter(warnings));
  if (common.json) {
    print_result(
        "lockstep.ckpt.diff/1",
        with_warnings(diff_json(report, graph), warnings));
  } else {
    print(diff_text(report, graph, common.color));
    print_warnings(warnings);
  }
  return differs(report, graph) ? 1 : 0;
}

} // namespace

Runner setup_diff(CLI::App& app, const Common& common) {
  auto args = std::make_shared<DiffArgs>();
  app.add_option("A", args->a, "checkpoint of any format")->required();
  app.add_option("B", args->b, "checkpoint of any format")->required();
  app.add_option("--rtol", args->rtol, "relative tolerance")
      ->check(check_not_negative);
  app.add_option("--atol", args->atol, "absolute tolerance")
      ->check(check_not_negative);
  app.add_option(
         "--map",
         args->maps,
         "FROM=TO: replace the front of names, 'module.='")
      ->allow_extra_args(false);
  app.add_flag(
      "--weights",
      args->weights,
      "compare the model's weights alone, wherever they are in the files");
  app.add_flag(
      "--ignore-dtype",
      args->ignore_dtype,
      "numbers of another type are equal if their values are");
  return [args, &common] { return run_diff(*args, common); };
}

} // namespace lockstep::cli
