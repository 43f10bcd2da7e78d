// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt show FILE [KEY]`: one value, or all of them.
#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/listing_args.h"
#include "cli/output.h"
#include "cli/tensor_export.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

struct ShowArgs {
  std::string file = {};
  std::string key = {};
  std::uint64_t head = 8;
  bool stats = false;
  bool csv = false;
  bool npy = false;
};

constexpr const char* kShowSchema = "lockstep.ckpt.show/1";

std::string number_text(const std::optional<double>& number) {
  return number ? shortest(*number) : "none";
}

Json number_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

// Six digits are enough for a table.
std::string short_number(const std::optional<double>& number) {
  return number ? format("{:.6g}", *number) : "none";
}

Json tensor_stats_json(
    const ckpt::Tensor& tensor,
    const ckpt::TensorStats& stats) {
  Json json = ckpt::tensor_json(tensor);
  json.set("elements", stats.elements)
      .set("min", number_json(stats.min))
      .set("max", number_json(stats.max))
      .set("mean", number_json(stats.mean))
      .set("nan", stats.nan_count)
      .set("inf", stats.inf_count)
      .set("head", Json::array(stats.head, element_json));
  return json;
}

std::string stats_text(
    std::string_view file_format,
    const ckpt::Tensor& tensor,
    const ckpt::TensorStats& stats) {
  std::string text = format(
      "dtype      {}\nshape      {}\nelements   {}\n",
      ckpt::dtype_info(tensor.dtype).name,
      ckpt::shape_text(tensor),
      with_commas(stats.elements));
  text += format(
      "storage    {}, offset {}, on {}{}{}\n",
      storage_place(file_format, *tensor.storage),
      tensor.offset,
      escape(tensor.storage->location, 20),
      tensor.is_contiguous() ? "" : ", strided",
      tensor.is_conj || tensor.is_neg ? ", a conj or neg view" : "");
  if (const auto quantizer = ckpt::quantizer_text(tensor); !quantizer.empty()) {
    text += format("quantizer  {}; below are the integers\n", quantizer);
  }
  text += format(
      "min        {}\nmax        {}\nmean       {}\nNaN        {}\n"
      "Inf        {}\n",
      number_text(stats.min),
      number_text(stats.max),
      number_text(stats.mean),
      stats.nan_count,
      stats.inf_count);
  return text + format("head       {}\n", join(stats.head, " "));
}

// Nothing else says it where numbers stand alone.
void warn_of_integers(const std::vector<std::string>& quantized) {
  if (!quantized.empty()) {
    print_warning(format(
        "quantized; the numbers are the stored integers: {}",
        some_names(quantized)));
  }
}

struct NamedStats {
  std::string name = {};
  ckpt::Tensor tensor = {};
  ckpt::TensorStats stats = {};
};

ckpt::ExpansionBudget budget_of(const Common& common) {
  return ckpt::ExpansionBudget(common.load.limits.max_expanded_bytes);
}

Result<ckpt::TensorStats> stats_of(
    const ckpt::Tensor& tensor,
    std::uint64_t head,
    const std::string& name,
    ckpt::ExpansionBudget& budget) {
  Status added = budget.add(tensor);
  return ckpt::about(
      added ? ckpt::tensor_stats(tensor, head)
            : Result<ckpt::TensorStats>(std::move(added).error()),
      format("tensor '{}'", escape(name)));
}

// Numbers of every tensor below a value.
Result<std::vector<NamedStats>> all_stats(
    const ckpt::Value& root,
    ckpt::ExpansionBudget budget) {
  std::vector<NamedStats> rows;
  Status first;
  LOCKSTEP_TRY(ckpt::for_each_tensor(
      root,
      [&](const std::string& name, const ckpt::Tensor& tensor) {
        if (!first || !ckpt::has_bytes(tensor)) {
          return;
        }
        auto stats = stats_of(tensor, 0, name, budget);
        if (stats) {
          rows.push_back(
              {.name = name, .tensor = tensor, .stats = *std::move(stats)});
        } else {
          first = std::move(stats).error();
        }
      }));
  LOCKSTEP_TRY(std::move(first));
  return rows;
}

std::string stats_table(const std::vector<NamedStats>& rows) {
  int width = 4;
  for (const NamedStats& row : rows) {
    width = std::max(width, display_width(escape(row.name, 200)));
  }
  std::string text = padded("name", width) +
                     format(
                         "  {:>12}  {:>14}  {:>14}  {:>14}  {:>8}  {:>8}\n",
                         "elements",
                         "min",
                         "max",
                         "mean",
                         "NaN",
                         "Inf");
  for (const NamedStats& row : rows) {
    text += padded(escape(row.name, 200), width) +
            format(
                "  {:>12}  {:>14}  {:>14}  {:>14}  {:>8}  {:>8}\n",
                with_commas(row.stats.elements),
                short_number(row.stats.min),
                short_number(row.stats.max),
                short_number(row.stats.mean),
                row.stats.nan_count,
                row.stats.inf_count);
  }
  return text;
}

Result<int> show_stats(const ckpt::Value& value, const Common& common) {
  LOCKSTEP_ASSIGN(const auto rows, all_stats(value, budget_of(common)));
  std::vector<std::string> quantized;
  for (const NamedStats& row : rows) {
    if (row.tensor.quantizer != nullptr) {
      quantized.push_back(row.name);
    }
  }
  warn_of_integers(quantized);
  if (!common.json) {
    print(stats_table(rows));
    return 0;
  }
  Json array = Json::array(rows, [](const NamedStats& row) {
    Json json = tensor_stats_json(row.tensor, row.stats);
    json.set("name", row.name);
    return json;
  });
  print_result(kShowSchema, Json::object().set("tensors", std::move(array)));
  return 0;
}

Result<int> show_tensor(
    const ckpt::Checkpoint& file,
    const ckpt::Tensor& tensor,
    const ShowArgs& args,
    const Common& common) {
  auto budget = budget_of(common);
  LOCKSTEP_ASSIGN(
      const auto stats,
      stats_of(tensor, args.head, args.key, budget));
  if (common.json) {
    print_result(
        kShowSchema,
        Json::object().set("tensor", tensor_stats_json(tensor, stats)));
  } else {
    print(stats_text(file.format, tensor, stats));
  }
  return 0;
}

Result<int> export_tensor(
    const ckpt::Value& value,
    const ShowArgs& args,
    const Common& common) {
  const ckpt::Tensor* tensor = value.as_tensor();
  if (tensor == nullptr) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.show",
        .message = format(
            "--csv and --npy need a tensor; '{}' is of type {}",
            escape(args.key),
            value.type_name()),
        .hint = "run 'lockstep ckpt ls FILE' for the names of tensors"};
  }
  if (tensor->quantizer != nullptr) {
    warn_of_integers({args.key});
  }
  LOCKSTEP_TRY(
      args.csv ? print_csv(*tensor, common.load.limits)
               : print_npy(*tensor, common.load.limits));
  return 0;
}

Result<int> show(
    const ckpt::Checkpoint& file,
    const ckpt::Value& value,
    const ShowArgs& args,
    const Common& common) {
  if (args.csv || args.npy) {
    return export_tensor(value, args, common);
  }
  if (const ckpt::Tensor* tensor = value.as_tensor()) {
    return show_tensor(file, *tensor, args, common);
  }
  if (args.stats) {
    return show_stats(value, common);
  }
  if (!common.json) {
    print(ckpt::to_text(value) + "\n");
    return 0;
  }
  LOCKSTEP_ASSIGN(Json json, ckpt::to_json(value));
  print_result(kShowSchema, std::move(json));
  return 0;
}

// The value of that name, else the tensors of the module of that name.
Result<ckpt::Value> find(const ckpt::Value& root, const std::string& key) {
  auto value = ckpt::find_path(root, key);
  if (value || value.error().code != ErrorCode::kNotFound) {
    return value;
  }
  LOCKSTEP_ASSIGN(auto below, ckpt::find_below(root, key));
  return below ? Result<ckpt::Value>(*std::move(below)) : std::move(value);
}

Result<int> run_show(const ShowArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  // Beside JSON, too: that is the value alone.
  print_warnings(warning_lines(file));
  LOCKSTEP_ASSIGN(
      const ckpt::Value value,
      ckpt::in_file(find(file.root, args.key), input.name()));
  return ckpt::in_file(show(file, value, args, common), input.name());
}

} // namespace

Runner setup_show(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ShowArgs>();
  add_file(app, args->file);
  app.add_option(
      "KEY",
      args->key,
      "dotted name of a value or a module; none shows everything");
  app.add_option("--head", args->head, "elements of a tensor to print")
      ->check(check_not_negative);
  app.add_flag("--stats", args->stats, "numbers of every tensor below KEY");
  auto* csv = app.add_flag("--csv", args->csv, "print a tensor's elements");
  app.add_flag("--npy", args->npy, "write a tensor as an npy file")
      ->excludes(csv);
  return [args, &common] { return run_show(*args, common); };
}

} // namespace lockstep::cli
