// SPDX-License-Identifier: BSD-3-Clause
//
// What the commands that change checkpoints share: where the result goes,
// --dry-run, the table of keys, and the JSON.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "lockstep/base/result.h"
#include "lockstep/ckpt/edit/key_report.h"
#include "lockstep/ckpt/edit/rewrite.h"

namespace lockstep::cli {

/// Arguments of every command that writes.
struct EditArgs {
  std::string file = {};
  /// Empty: `file` itself is changed.
  std::string output = {};
  bool dry_run = false;
  /// Overwrite an output that is there.
  bool force = false;
};

/// Declares FILE, --output, --dry-run and --force.
void add_edit(CLI::App& app, EditArgs& args);

/// How the result is written when FILE itself is changed.
enum class InPlace {
  /// The new names are appended to a zip checkpoint; tensors stay where they
  /// are.
  kAppend,
  /// A new file takes its place: what was taken out leaves the disk.
  kReplace,
};

/// The change of one command.
struct EditJob {
  std::string schema = {};
  InPlace in_place = InPlace::kReplace;
  std::function<Result<ckpt::Edited>(const ckpt::Value& root)> edit = {};
};

/// Refuses an output that exists, but for FILE itself and with --force.
/// Errors: kInvalidArgument (E_EXISTS).
Status check_output(const EditArgs& args);

/// Writes `root`, a tree made of `file`, to where `args` say.
Result<ckpt::RewriteReport> write_edited(
    const EditArgs& args,
    const ckpt::Checkpoint& file,
    const ckpt::Value& root,
    InPlace in_place = InPlace::kReplace);

/// Opens, changes, writes and prints.
Result<int>
run_edit(const EditArgs& args, const Common& common, const EditJob& job);

} // namespace lockstep::cli
