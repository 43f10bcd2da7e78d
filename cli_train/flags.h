// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of `lockstep train`, read by the table of flags.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/settings/config.h"

namespace lockstep::cli_train {

/// What was typed, before it is laid over a file's settings.
struct CommandLine {
  /// Flags with their text, in the order first given, no flag twice.
  std::vector<std::pair<const train::Flag*, std::string>> values = {};
  /// The bare argument, which is a value of --data-dir, too.
  std::string folder = {};
  /// `--config FILE`.
  std::string config_file = {};
  /// `--recipe NAME`.
  std::string recipe = {};
  bool wants_help = false;
  bool wants_dump = false;
  /// `--dry-run` or `--explain`.
  bool wants_dry_run = false;
};

/// Splits `args` (without program and subcommand). A bare argument is the data
/// folder. Of a repeated flag the last value counts, as in Python's argparse.
/// For `--config` and the like that are not typed, variables count, such as
/// `LOCKSTEP_CONFIG`; those of settings are for `train::apply_environment`.
/// Errors: throws kInvalidArgument for an unknown flag (with the nearest one),
/// a missing or empty value, a value of a word that takes none, or two data
/// folders.
CommandLine parse_command_line(
    std::span<const std::string> args,
    const train::Environment& environment = train::process_environment());

/// A sentence for each variable whose name is near to one that stands for a
/// flag. `names`: of all variables.
std::vector<std::string> idle_variables(std::span<const std::string> names);

/// Sets every flag that was typed. Errors: as `train::set_flag`.
void apply(
    const CommandLine& line,
    train::TrainConfig& config,
    train::SettingSources& sources);

/// The text of `--help`, one block per group.
std::string help_text();

} // namespace lockstep::cli_train
