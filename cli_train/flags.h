// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of `lockstep train`, read by the table of flags.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/sources.h"

namespace lockstep::cli_train {

/// What was typed, before it is laid over a file's settings.
struct CommandLine {
  /// Flags with their text, in the order given, no flag twice.
  std::vector<std::pair<const train::Flag*, std::string>> values = {};
  /// `--config FILE`.
  std::string config_file = {};
  bool wants_help = false;
  bool wants_dump = false;
  /// `--dry-run` or `--explain`.
  bool wants_dry_run = false;
};

/// Splits `args` (without program and subcommand). A bare argument is the data
/// folder. Errors: throws kInvalidArgument for an unknown flag (with the
/// nearest one), a missing value, or a flag given twice with two values.
CommandLine parse_command_line(std::span<const std::string> args);

/// Sets every flag that was typed. Errors: as `train::set_flag`.
void apply(
    const CommandLine& line,
    train::TrainConfig& config,
    train::SettingSources& sources);

/// The text of `--help`, one block per group.
std::string help_text();

} // namespace lockstep::cli_train
