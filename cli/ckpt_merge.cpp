// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt merge A B OUT`: the weights of two files in one.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "cli/file_warnings.h"
#include "cli/input.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {
namespace {

struct MergeArgs {
  EditArgs edit = {};
  std::string second = {};
  ckpt::MergeOptions options = {};
};

Result<int> run_merge(const MergeArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(const Input input, Input::open(args.second));
  LOCKSTEP_ASSIGN(const ckpt::Checkpoint second, input.load(common.load));
  warn_of_left_out(second);
  return run_edit(
      args.edit,
      common,
      {.schema = "lockstep.ckpt.merge/1",
       .own_input = OwnInput::kStays,
       .result = "the weights of both files",
       .others = {args.second},
       .edit = [&](const ckpt::Checkpoint& first) -> Result<ckpt::Edited> {
         LOCKSTEP_TRY(
             ckpt::in_file(ckpt::weights_to_edit(second.root), input.name()));
         ckpt::MergeOptions options = args.options;
         // A program has no place for more.
         options.weights_only =
             options.weights_only || first.program != nullptr;
         return ckpt::merge(first.root, second.root, options);
       },
       .records = second.extra_records,
       .merge = args.options});
}

} // namespace

Runner setup_merge(CLI::App& app, const Common& common) {
  auto args = std::make_shared<MergeArgs>();
  app.add_option("A", args->edit.file, "first checkpoint")->required();
  app.add_option("B", args->second, "second checkpoint")->required();
  add_output(app, args->edit.target.path);
  add_namespace_flag(app, args->edit.namespaces);
  add_target_flags(app, args->edit.target);
  app.add_flag(
      "--replace",
      args->options.replace,
      "where both have a key, take B's value");
  return [args, &common] { return run_merge(*args, common); };
}

} // namespace lockstep::cli
