// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt pick FILE KEY...` and `drop FILE KEY...`.
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "lockstep/ckpt/edit/tree_edit.h"

namespace lockstep::cli {
namespace {

struct PickArgs {
  EditArgs edit = {};
  std::vector<std::string> keys = {};
};

using Edit = Result<ckpt::Edited> (*)(
    const ckpt::Value& root,
    std::span<const std::string> names);

Runner setup(
    CLI::App& app,
    const Common& common,
    const std::string& schema,
    Edit edit) {
  auto args = std::make_shared<PickArgs>();
  add_edit(app, args->edit);
  app.add_option("KEY", args->keys, "names of entries, weights or modules")
      ->required();
  return [args, &common, schema, edit] {
    return run_edit(
        args->edit,
        common,
        {.schema = schema, .edit = [&](const ckpt::Value& root) {
           return edit(root, args->keys);
         }});
  };
}

} // namespace

Runner setup_pick(CLI::App& app, const Common& common) {
  return setup(app, common, "lockstep.ckpt.pick/1", ckpt::pick);
}

Runner setup_drop(CLI::App& app, const Common& common) {
  return setup(app, common, "lockstep.ckpt.drop/1", ckpt::drop);
}

} // namespace lockstep::cli
