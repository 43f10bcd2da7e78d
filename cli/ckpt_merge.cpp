// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt merge A B OUT`: the weights of two files in one.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "cli/input.h"
#include "lockstep/ckpt/edit/tree_edit.h"

namespace lockstep::cli {
namespace {

struct MergeArgs {
  EditArgs edit = {};
  std::string second = {};
  ckpt::MergeOptions options = {};
};

Result<int> run_merge(const MergeArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.second));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint second, input.load());
  return run_edit(
      args.edit,
      common,
      {.schema = "lockstep.ckpt.merge/1", .edit = [&](const ckpt::Value& root) {
         return ckpt::merge(root, second.root, args.options);
       }});
}

} // namespace

Runner setup_merge(CLI::App& app, const Common& common) {
  auto args = std::make_shared<MergeArgs>();
  app.add_option("A", args->edit.file, "first checkpoint")->required();
  app.add_option("B", args->second, "second checkpoint")->required();
  app.add_option("OUT", args->edit.output, "file to write")->required();
  app.add_flag("--dry-run", args->edit.dry_run, "show the keys, write nothing");
  app.add_flag("--force", args->edit.force, "overwrite OUT if it exists");
  app.add_flag(
      "--replace",
      args->options.replace,
      "of a key that both have, take B's value");
  return [args, &common] { return run_merge(*args, common); };
}

} // namespace lockstep::cli
