// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt extract-model FILE OUT`: the weights of a model that was saved
// whole, without its class.
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/format_table.h"
#include "lockstep/ckpt/model/extract_model.h"

namespace lockstep::cli {
namespace {

struct ExtractModelArgs {
  std::string file = {};
  std::string output = {};
  ckpt::ExtractOptions options = {};
  std::string format = "pt";
  std::string map_location = {};
  bool dry_run = false;
  bool force = false;
};

Status check_output(const ExtractModelArgs& args) {
  if (args.dry_run || args.force || !real_fs().stat(args.output)) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = "the output file exists",
      .hint = "--force overwrites it",
      .path = args.output,
      .detail = "E_EXISTS"};
}

// Storages are shared with the input, which nobody reads any more.
void map_location(const ckpt::Checkpoint& file, const std::string& location) {
  for (const auto& storage : file.storages) {
    storage->location = location;
  }
}

Json extract_model_json(
    const ExtractModelArgs& args,
    const ckpt::ExtractedModel& model) {
  Json devices = Json::array();
  for (const std::string& id : model.facts.device_ids) {
    devices.push(id);
  }
  Json json = Json::object();
  json.set("output", args.output)
      .set("format", args.format)
      .set("written", !args.dry_run)
      .set("key", model.key)
      .set("class", model.facts.class_name)
      .set("inner_class", model.facts.inner_class)
      .set("device_ids", std::move(devices))
      .set("output_device", model.facts.output_device)
      .set("is_uncalled", model.facts.is_uncalled)
      .set("unwrapped", args.options.unwrap)
      .set("parameters", model.parameters)
      .set("buffers", model.buffers)
      .set("left_out", model.left_out);
  return json;
}

std::string result_text(
    const ExtractModelArgs& args,
    const ckpt::ExtractedModel& model) {
  std::string text = format("{:<8} {}\n", "model", ckpt::to_text(model.facts));
  if (model.facts.is_uncalled) {
    text += format("{:<8} the file {}\n", "note", ckpt::kUncalledText);
  }
  const bool is_wrapped = !model.facts.inner_class.empty();
  if (is_wrapped && !args.options.unwrap) {
    text += format(
        "{:<8} keys keep the wrapper's prefix; --unwrap gives those of the "
        "bare model\n",
        "note");
  }
  if (model.left_out != 0) {
    text += format(
        "{:<8} {} tensors are attributes, which a state_dict does not have: "
        "'{}'{}\n",
        "note",
        model.left_out,
        escape(model.first_left_out),
        model.left_out > 1 ? ", ..." : "");
  }
  return text + format(
                    "{:<8} {}: {} parameters, {} buffers{}\n",
                    args.dry_run ? "would be" : "written",
                    escape(args.output, 200),
                    model.parameters,
                    model.buffers,
                    args.dry_run ? "; nothing was written" : "");
}

Result<int> run_extract_model(
    const ExtractModelArgs& args,
    const Common& common) {
  LOCKSTEP_TRY(check_output(args));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load());
  auto model = ckpt::extract_model(file.root, args.options);
  if (!model) {
    model.error().path = input.name();
    return std::move(model).error();
  }
  if (!args.map_location.empty()) {
    map_location(file, args.map_location);
  }
  if (!args.dry_run) {
    LOCKSTEP_TRY(
        ckpt::save(args.output, model->state_dict, {.format = args.format}));
  }
  if (common.json) {
    print_result(
        "lockstep.ckpt.extract-model/1",
        extract_model_json(args, *model));
  } else {
    print(result_text(args, *model));
  }
  return 0;
}

std::set<std::string> format_names() {
  std::set<std::string> names;
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    names.emplace(writer.name);
  }
  return names;
}

} // namespace

Runner setup_extract_model(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ExtractModelArgs>();
  add_file(app, args->file);
  app.add_option("OUT", args->output, "where the state_dict goes")->required();
  app.add_flag(
      "--unwrap",
      args->options.unwrap,
      "take the model out of DataParallel and the like (no 'module.')");
  app.add_option("--key", args->options.key, "name of the model in FILE");
  app.add_option("--to", args->format, "format of OUT")
      ->check(CLI::IsMember(format_names()))
      ->capture_default_str();
  app.add_option(
      "--map-location",
      args->map_location,
      "device tag of all tensors in OUT: cpu, cuda:0");
  app.add_flag("--dry-run", args->dry_run, "say what would be written");
  app.add_flag("--force", args->force, "overwrite OUT");
  return [args, &common] { return run_extract_model(*args, common); };
}

} // namespace lockstep::cli
