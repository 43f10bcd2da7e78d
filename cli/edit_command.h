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
#include "lockstep/base/error.h"
#include "lockstep/ckpt/edit.h"

namespace lockstep::cli {

/// Arguments of such a command.
struct EditArgs {
  std::string file = {};
  bool namespaces = false;
  /// Its path may be empty: the result takes the place of `file`.
  Target target = {};
};

/// Declares FILE, OUT or --output, --dry-run and --force. `takes_more`: further
/// arguments follow FILE.
void add_edit(CLI::App& app, EditArgs& args, bool takes_more = false);

/// Declares --key, the entry that holds the weights.
void add_weights_key(CLI::App& app, std::string& key);

/// The change of one command.
struct EditJob {
  std::string schema = {};
  OwnInput own_input = OwnInput::kMayChange;
  /// What would be left of FILE (TargetRule).
  std::string_view result = {};
  /// Files that it reads beside FILE.
  std::vector<std::string> others = {};
  std::function<Result<ckpt::Edited>(const ckpt::Checkpoint& file)> edit = {};
  /// Of other files, to be merged with those of FILE.
  std::vector<ckpt::ExtraRecord> records = {};
  ckpt::MergeOptions merge = {};
};

/// Declares --namespace-as-dict.
void add_namespace_flag(CLI::App& app, bool& chosen);

/// The format in which an edit of `file` is written to `output`: its own. What
/// is taken out of a program is a file of its own, unless its name says that it
/// is to be a program again.
/// Errors: as `ckpt::writer_of`.
Result<std::string> format_of_edit(
    const ckpt::Checkpoint& file,
    const std::string& input,
    const std::string& output);

/// Writes `root`, made of `file`, in the format of `target`.
Result<Written> write_edit(
    const CheckedTarget& target,
    const ckpt::Checkpoint& file,
    const ckpt::Value& root);

/// Opens, changes, writes and prints.
Result<int>
run_edit(const EditArgs& args, const Common& common, const EditJob& job);

} // namespace lockstep::cli
