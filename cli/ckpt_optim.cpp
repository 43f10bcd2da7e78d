// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt optim --to cpp|python IN OUT`: optimizer states between
// Python and C++.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/target.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::cli {
namespace {

struct OptimArgs {
  std::string file = {};
  Target target = {};
  std::string to = {};
  std::string key = {};
};

Json optim_json(
    const OptimArgs& args,
    const ckpt::OptimState& state,
    const Written& written) {
  Json json = Json::object();
  json.set("to", args.to)
      .set("algorithm", state.algorithm)
      .set("parameters", state.parameters)
      .set("states", state.states)
      .set("dropped", Json::array(state.dropped));
  set_written(json, written);
  return json;
}

std::string optim_text(const ckpt::OptimState& state, const Written& written) {
  std::string text = format(
      "{} with {}, {} of them with a state\n",
      state.algorithm,
      counted(state.parameters, "parameter"),
      with_commas(state.states));
  text += state.dropped.empty()
              ? ""
              : "left out: " + names_text(state.dropped) + "\n";
  return text + wrote_text(written);
}

Result<ckpt::OptimState> convert(
    const OptimArgs& args,
    const ckpt::Value& root) {
  ckpt::Value state;
  if (!args.key.empty()) {
    LOCKSTEP_ASSIGN(state, ckpt::find_path(root, args.key));
  } else if (const ckpt::Value* found = ckpt::find_optim_state(root)) {
    state = *found;
  } else {
    return Error{
        .code = ErrorCode::kNotFound,
        .op = "ckpt.optim",
        .message = "the file holds no optimizer state under a usual name",
        .hint = "name it with --key",
        .detail = "E_NO_KEY"};
  }
  if (args.to != "cpp") {
    return ckpt::optim_to_python(state);
  }
  const ckpt::Value weights = ckpt::locate_weights(root).value;
  return ckpt::optim_to_cpp(state, &weights);
}

Result<int> run_optim(const OptimArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(
      const auto target,
      CheckedTarget::check(
          args.target,
          {.format = args.to == "cpp" ? "libtorch" : "pt",
           .inputs = {args.file},
           .result = "the optimizer state alone",
           .limits = common.load.limits}));
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load(common.load));
  warn_of_left_out(file);
  LOCKSTEP_ASSIGN(
      const ckpt::OptimState state,
      ckpt::in_file(convert(args, file.root), input.name()));
  LOCKSTEP_ASSIGN(const Written written, target.save(file, state.root));
  if (common.json) {
    print_result(
        "lockstep.ckpt.optim/1",
        with_warnings(optim_json(args, state, written), state.notes));
  } else {
    print_warnings(state.notes);
    print(optim_text(state, written));
  }
  return 0;
}

} // namespace

Runner setup_optim(CLI::App& app, const Common& common) {
  auto args = std::make_shared<OptimArgs>();
  add_file(app, args->file);
  add_output(app, args->target.path);
  app.add_option("--to", args->to, "side that will load it")
      ->required()
      ->check(CLI::IsMember({"cpp", "python"}));
  app.add_option(
      "--key",
      args->key,
      "entry that holds the state, such as optimizer");
  add_target_flags(app, args->target);
  return [args, &common] { return run_optim(*args, common); };
}

} // namespace lockstep::cli
