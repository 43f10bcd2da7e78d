// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt pick FILE KEY...` and `drop FILE KEY...`.
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {
namespace {

struct PickArgs {
  EditArgs edit = {};
  std::vector<std::string> keys = {};
};

using Edit = Result<ckpt::Edited> (*)(
    const ckpt::Value& root,
    std::span<const std::string> names);

// What tells the two commands apart.
struct Kind {
  std::string schema = {};
  Edit edit = nullptr;
  OwnInput own_input = OwnInput::kMayChange;
  std::string_view result = {};
};

Runner setup(CLI::App& app, const Common& common, const Kind& kind) {
  auto args = std::make_shared<PickArgs>();
  add_edit(app, args->edit, /*takes_more=*/true);
  app.add_option("KEY", args->keys, "names of entries, weights or modules")
      ->required();
  return [args, &common, kind] {
    return run_edit(
        args->edit,
        common,
        {.schema = kind.schema,
         .own_input = kind.own_input,
         .result = kind.result,
         .edit = [&](const ckpt::Checkpoint& input) {
           return kind.edit(input.root, args->keys);
         }});
  };
}

} // namespace

Runner setup_pick(CLI::App& app, const Common& common) {
  return setup(
      app,
      common,
      {.schema = "lockstep.ckpt.pick/1",
       .edit = ckpt::pick,
       .own_input = OwnInput::kNeedsForce,
       .result = "what is picked"});
}

Runner setup_drop(CLI::App& app, const Common& common) {
  return setup(
      app,
      common,
      {.schema = "lockstep.ckpt.drop/1", .edit = ckpt::drop});
}

} // namespace lockstep::cli
