// SPDX-License-Identifier: BSD-3-Clause
//
// What every command takes, read back from the parser: shell completion and the
// manual are made of it, so that they cannot fall behind.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// One flag or positional argument.
struct ArgumentDoc {
  /// "--filter"; for a positional argument its name, "FILE".
  std::string name = {};
  /// "-l"; empty without one.
  std::string short_name = {};
  std::string help = {};
  bool is_positional = false;
  bool is_required = false;
  /// True if it is followed by a value.
  bool takes_value = false;
  /// Limits and other flags of every command: not in --help.
  bool is_common = false;
};

/// One command.
struct CommandDoc {
  /// "ckpt", or empty at the top level.
  std::string group = {};
  std::string name = {};
  std::string help = {};
  std::vector<ArgumentDoc> arguments = {};
};

/// Every command of this program, then those that lockstep-train runs.
std::vector<CommandDoc> command_docs();

/// Completion scripts, one for each shell.
std::string bash_completion(std::span<const CommandDoc> commands);
std::string zsh_completion(std::span<const CommandDoc> commands);
std::string fish_completion(std::span<const CommandDoc> commands);

/// The manual page lockstep(1), in the man macros of roff.
std::string manual(std::span<const CommandDoc> commands);

} // namespace lockstep::cli
