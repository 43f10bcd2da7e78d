// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt rename FILE s/REGEX/REPLACEMENT/`.
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {
namespace {

struct RenameArgs {
  EditArgs edit = {};
  std::string rule = {};
  std::string weights_key = {};
};

Result<int> run_rename(const RenameArgs& args, const Common& common) {
  LOCKSTEP_ASSIGN(
      const ckpt::RenameRule rule,
      ckpt::RenameRule::parse(args.rule));
  return run_edit(
      args.edit,
      common,
      {.schema = "lockstep.ckpt.rename/1",
       .edit = [&](const ckpt::Checkpoint& input) {
         return ckpt::rename_keys(input.root, rule, args.weights_key);
       }});
}

} // namespace

Runner setup_rename(CLI::App& app, const Common& common) {
  auto args = std::make_shared<RenameArgs>();
  add_edit(app, args->edit, /*takes_more=*/true);
  app.add_option("RULE", args->rule, "s/REGEX/REPLACEMENT/, g for all matches")
      ->required();
  add_weights_key(app, args->weights_key);
  return [args, &common] { return run_rename(*args, common); };
}

} // namespace lockstep::cli
