// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt extract-model FILE OUT`: the weights of a model that was saved
// whole, without its class.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/convert_choice.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target.h"
#include "cli/target_format.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/model.h"

namespace lockstep::cli {
namespace {

struct ExtractModelArgs {
  std::string file = {};
  Target target = {};
  ckpt::ExtractOptions options = {};
  std::string to = {};
  std::string map_location = {};
};

// Storages are shared with the input, which nobody reads any more.
void map_location(const ckpt::Checkpoint& file, const std::string& location) {
  for (const auto& storage : file.storages) {
    storage->location = location;
  }
}

Json unread_row(const ckpt::UnreadModule& child) {
  return Json::object().set("name", child.name).set("class", child.class_name);
}

Json extract_model_json(
    const ExtractModelArgs& args,
    const ckpt::ExtractedModel& model,
    const Chosen& chosen,
    const Written& written) {
  Json json = Json::object();
  json.set("key", model.key)
      .set("class", model.facts.class_name)
      .set("inner_class", model.facts.inner_class)
      .set("device_ids", Json::array(model.facts.device_ids))
      .set("output_device", model.facts.output_device)
      .set("is_uncalled", model.facts.is_uncalled)
      .set("unwrapped", args.options.unwrap)
      .set("parameters", model.parameters)
      .set("buffers", model.buffers)
      .set("left_out", model.left_out.size())
      .set("without_place", Json::array(left_out_names(chosen)))
      .set("unread", Json::array(model.unread, unread_row));
  set_written(json, written);
  return json;
}

std::string lost_modules_text(const ckpt::ExtractedModel& model) {
  std::string text;
  for (const ckpt::UnreadModule& child : model.unread) {
    text += format(
        "{:<8} {}: its weights are missing; only the code of '{}' could make "
        "the module\n",
        "lost",
        escape(child.name, 200),
        escape(child.class_name, 200));
  }
  return text;
}

std::string result_text(
    const ExtractModelArgs& args,
    const ckpt::ExtractedModel& model,
    const Chosen& chosen,
    const Written& written) {
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
  if (!model.left_out.empty()) {
    text += format(
        "{:<8} {} not in a state_dict: {}\n",
        "note",
        counted(
            model.left_out.size(),
            "tensor is an attribute and",
            "tensors are attributes and"),
        some_names(model.left_out));
  }
  return text + lost_modules_text(model) +
         format(
             "{:<8} {}, {}\n",
             "holds",
             counted(model.parameters, "parameter"),
             counted(model.buffers, "buffer")) +
         left_out_text(chosen, written.format) + wrote_text(written);
}

Result<int> run_extract_model(
    const ExtractModelArgs& args,
    const Common& common) {
  const std::string to =
      args.to.empty() ? format_by_name(args.target.path) : args.to;
  LOCKSTEP_TRY(check_format(to));
  LOCKSTEP_TRY(ckpt::check_map_location(args.map_location));
  LOCKSTEP_ASSIGN(
      const auto target,
      CheckedTarget::check(
          args.target,
          {.format = to,
           .is_format_asked = !args.to.empty(),
           .inputs = {args.file},
           .result = "the state_dict alone",
           .limits = common.load.limits}));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  warn_of_left_out(file);
  LOCKSTEP_ASSIGN(
      const ckpt::ExtractedModel model,
      ckpt::in_file(ckpt::extract_model(file, args.options), input.name()));
  if (!args.map_location.empty()) {
    map_location(file, args.map_location);
  }
  LOCKSTEP_ASSIGN(const Chosen chosen, choose_all(model.state_dict, to));
  LOCKSTEP_ASSIGN(const Written written, target.save(file, model.state_dict));
  if (common.json) {
    print_result(
        "lockstep.ckpt.extract-model/1",
        with_warnings(
            extract_model_json(args, model, chosen, written),
            chosen.warnings));
  } else {
    print_warnings(chosen.warnings);
    print(result_text(args, model, chosen, written));
  }
  const bool is_whole =
      model.unread.empty() && model.parameters + model.buffers != 0;
  return is_whole ? 0 : 1;
}

} // namespace

Runner setup_extract_model(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ExtractModelArgs>();
  add_file(app, args->file);
  add_output(
      app,
      args->target.path,
      "where the state_dict goes, also as -o OUT");
  app.add_flag(
      "--unwrap",
      args->options.unwrap,
      "take the model out of DataParallel and the like (no 'module.')");
  app.add_option("--key", args->options.key, "name of the model in FILE");
  app.add_option(
      "--to",
      args->to,
      "format: " + format_names() + "; default: by OUT's name");
  app.add_option(
      "--map-location",
      args->map_location,
      "device tag for all tensors in OUT, such as cpu or cuda:0");
  add_target_flags(app, args->target);
  return [args, &common] { return run_extract_model(*args, common); };
}

} // namespace lockstep::cli
