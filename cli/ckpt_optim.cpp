// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt optim --to cpp|python IN OUT`: optimizer states between
// Python and C++.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/find_path.h"
#include "lockstep/ckpt/optim/optim_convert.h"

namespace lockstep::cli {
namespace {

struct OptimArgs {
  std::string file = {};
  std::string output = {};
  std::string to = {};
  std::string key = {};
  bool dry_run = false;
};

Json optim_json(const OptimArgs& args, const ckpt::OptimState& state) {
  Json dropped = Json::array();
  for (const std::string& name : state.dropped) {
    dropped.push(name);
  }
  return Json::object()
      .set("output", args.output)
      .set("to", args.to)
      .set("algorithm", state.algorithm)
      .set("parameters", state.parameters)
      .set("states", state.states)
      .set("dropped", std::move(dropped))
      .set("written", !args.dry_run);
}

std::string optim_text(const OptimArgs& args, const ckpt::OptimState& state) {
  std::string text = format(
      "{} {}: {} with {} parameters, {} of them with a state\n",
      args.dry_run ? "would write" : "wrote",
      escape(args.output),
      state.algorithm,
      state.parameters,
      state.states);
  std::vector<std::string> names;
  names.reserve(state.dropped.size());
  for (const std::string& name : state.dropped) {
    names.push_back(escape(name));
  }
  return names.empty() ? text : text + "left out: " + join(names, ", ") + "\n";
}

Result<ckpt::OptimState> convert(
    const OptimArgs& args,
    const ckpt::Value& root) {
  if (!args.key.empty()) {
    LOCKSTEP_ASSIGN(const ckpt::Value value, ckpt::find_path(root, args.key));
    return args.to == "cpp" ? ckpt::optim_to_cpp(value)
                            : ckpt::optim_to_python(value);
  }
  const ckpt::Value* found = ckpt::find_optim_state(root);
  if (found == nullptr) {
    return Error{
        .code = ErrorCode::kNotFound,
        .op = "ckpt.optim",
        .message = "the file holds no optimizer state under a usual name",
        .hint = "name it with --key",
        .detail = "E_NO_KEY"};
  }
  return args.to == "cpp" ? ckpt::optim_to_cpp(*found)
                          : ckpt::optim_to_python(*found);
}

Result<int> run_optim(const OptimArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.file));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint file, input.load());
  auto state = convert(args, file.root);
  if (!state) {
    state.error().path = input.name();
    return std::move(state).error();
  }
  if (!args.dry_run) {
    ckpt::SaveOptions options;
    options.format = args.to == "cpp" ? "libtorch" : "pt";
    LOCKSTEP_TRY(ckpt::save(args.output, state->root, options));
  }
  if (common.json) {
    print_result("lockstep.ckpt.optim/1", optim_json(args, *state));
  } else {
    print(optim_text(args, *state));
  }
  return 0;
}

} // namespace

Runner setup_optim(CLI::App& app, const Common& common) {
  auto args = std::make_shared<OptimArgs>();
  add_file(app, args->file);
  app.add_option("OUTPUT", args->output, "file to write")->required();
  app.add_option("--to", args->to, "side that will load it: cpp or python")
      ->required()
      ->check(CLI::IsMember({"cpp", "python"}));
  app.add_option("--key", args->key, "where the state is: optimizer");
  app.add_flag("--dry-run", args->dry_run, "say what would be written");
  return [args, &common] { return run_optim(*args, common); };
}

} // namespace lockstep::cli
