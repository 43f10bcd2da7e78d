// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt strip FILE` and `prefix FILE`: "module." off and on.
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/edit_command.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {
namespace {

struct StripArgs {
  EditArgs edit = {};
  ckpt::StripOptions options = {};
};

struct PrefixArgs {
  EditArgs edit = {};
  ckpt::PrefixOptions options = {};
};

} // namespace

Runner setup_strip(CLI::App& app, const Common& common) {
  auto args = std::make_shared<StripArgs>();
  add_edit(app, args->edit);
  app.add_option(
      "--prefix",
      args->options.prefix,
      "prefix to remove; default: 'module.' or '_orig_mod.'");
  add_weights_key(app, args->options.weights_key);
  app.add_flag(
      "--partial",
      args->options.partial,
      "strip even if some keys lack the prefix; those stay");
  return [args, &common] {
    return run_edit(
        args->edit,
        common,
        {.schema = "lockstep.ckpt.strip/1",
         .edit = [&](const ckpt::Checkpoint& input) {
           return ckpt::strip_prefix(input.root, args->options);
         }});
  };
}

Runner setup_prefix(CLI::App& app, const Common& common) {
  auto args = std::make_shared<PrefixArgs>();
  add_edit(app, args->edit);
  app.add_option(
         "--prefix",
         args->options.prefix,
         "prefix to put in front of every key")
      ->capture_default_str();
  add_weights_key(app, args->options.weights_key);
  return [args, &common] {
    return run_edit(
        args->edit,
        common,
        {.schema = "lockstep.ckpt.prefix/1",
         .edit = [&](const ckpt::Checkpoint& input) {
           return ckpt::add_prefix(input.root, args->options);
         }});
  };
}

} // namespace lockstep::cli
