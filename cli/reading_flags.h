// SPDX-License-Identifier: BSD-3-Clause
//
// Flags of every command that reads a checkpoint: bounds on what a file may
// ask for, from the table of limits, and switches, which are a table here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace CLI {
class Option;
} // namespace CLI

namespace lockstep::cli {

/// A flag that is no limit.
struct ReadingSwitch {
  /// "--byteorder".
  std::string_view flag = {};
  /// "little|big"; empty for a flag without a value.
  std::string_view value = {};
  std::string_view help = {};
  CLI::Option* (*add)(
      CLI::App& app,
      const std::string& flag,
      const std::string& help,
      Common& common) = nullptr;
};

/// All rows, by name.
std::span<const ReadingSwitch> reading_switches();

/// Declares one flag for each switch and each limit, unless the command has a
/// flag of that name.
void add_reading_flags(CLI::App& app, Common& common);

/// To be called when the arguments are parsed.
void apply_reading_flags(Common& common);

} // namespace lockstep::cli
