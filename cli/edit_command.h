// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands that change checkpoints share: FILE, -o, the table of keys
// of a dry run, and the JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/target.h"
#include "lockstep/base/result.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {

/// Arguments of such a command.
struct EditArgs {
  std::string file = {};
  /// Its path may be empty: the result takes the place of `file`.
  Target target = {};
};

/// Declares FILE, --output, --dry-run and --force.
void add_edit(CLI::App& app, EditArgs& args);

/// The change of one command.
struct EditJob {
  std::string schema = {};
  OwnInput own_input = OwnInput::kMayChange;
  /// What would be left of FILE (TargetRule).
  std::string_view result = {};
  /// Files that it reads beside FILE.
  std::vector<std::string> others = {};
  std::function<Result<ckpt::Edited>(const ckpt::Value& root)> edit = {};
  /// Of other files, to be merged with those of FILE.
  std::vector<ckpt::ExtraRecord> records = {};
  ckpt::MergeOptions merge = {};
};

/// Opens, changes, writes and prints.
Result<int>
run_edit(const EditArgs& args, const Common& common, const EditJob& job);

} // namespace lockstep::cli
