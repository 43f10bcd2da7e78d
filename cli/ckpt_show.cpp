// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt show FILE [KEY]`: one value, or all of them.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/element.h"
#include "lockstep/ckpt/find_path.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::cli {
namespace {

struct Args {
  std::string file = {};
  std::string key = {};
  std::uint64_t head = 8;
};

std::string number_text(const std::optional<double>& number) {
  return number ? shortest(*number) : "none";
}

Json number_json(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json stats_json(const ckpt::Tensor& tensor, const ckpt::TensorStats& stats) {
  Json head = Json::array();
  for (const std::string& element : stats.head) {
    head.push(element);
  }
  Json json = ckpt::tensor_json(tensor);
  json.set("elements", stats.elements)
      .set("min", number_json(stats.min))
      .set("max", number_json(stats.max))
      .set("mean", number_json(stats.mean))
      .set("nan", stats.nan_count)
      .set("inf", stats.inf_count)
      .set("head", std::move(head));
  return Json::object().set("tensor", std::move(json));
}

std::string stats_text(
    const ckpt::Tensor& tensor,
    const ckpt::TensorStats& stats) {
  std::string text = format(
      "dtype      {}\nshape      {}\nelements   {}\n",
      ckpt::dtype_info(tensor.dtype).name,
      ckpt::shape_text(tensor),
      with_commas(stats.elements));
  text += format(
      "storage    data/{}, offset {}, on {}{}{}\n",
      escape(tensor.storage->key, 20),
      tensor.offset,
      escape(tensor.storage->location, 20),
      tensor.is_contiguous() ? "" : ", strided",
      tensor.is_conj || tensor.is_neg ? ", lazy conj or neg not applied" : "");
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

Result<int> run(const Args& args, const Common& common) {
  constexpr const char* kSchema = "lockstep.ckpt.show/1";
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load());
  auto value = ckpt::find_path(file.root, args.key);
  if (!value) {
    value.error().path = input.name();
    return std::move(value).error();
  }
  const ckpt::Tensor* tensor = value->as_tensor();
  if (tensor == nullptr) {
    if (!common.json) {
      print(ckpt::to_text(*value) + "\n");
      return 0;
    }
    LOCKSTEP_ASSIGN(Json json, ckpt::to_json(*value));
    print_result(kSchema, std::move(json));
    return 0;
  }
  auto stats = ckpt::tensor_stats(*tensor, args.head);
  if (!stats) {
    Error error = std::move(stats).error();
    error.path = input.name();
    error.message = format("tensor '{}': {}", escape(args.key), error.message);
    return error;
  }
  if (common.json) {
    print_result(kSchema, stats_json(*tensor, *stats));
  } else {
    print(stats_text(*tensor, *stats));
  }
  return 0;
}

} // namespace

Runner setup_show(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Args>();
  add_file(app, args->file);
  app.add_option("KEY", args->key, "dotted name; none shows everything");
  app.add_option("--head", args->head, "elements of a tensor to print");
  return [args, &common] { return run(*args, common); };
}

} // namespace lockstep::cli
