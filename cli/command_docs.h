// SPDX-License-Identifier: BSD-3-Clause
//
// What every command takes, read back from the parser and from the table of
// training flags: help, shell completion and the manual are made of it, so that
// they cannot fall behind.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace lockstep::cli {

/// One flag or positional argument.
struct ArgumentDoc {
  /// "--filter"; for a positional argument its name, "FILE".
  std::string name = {};
  /// "-l"; empty without one.
  std::string short_name = {};
  /// Placeholder of the value, "REGEX"; empty for a switch.
  std::string value = {};
  /// Words that the value may be, or is likely to be.
  std::vector<std::string> words = {};
  /// True if the value is one of them: --help lists them.
  bool is_choice = true;
  std::string help = {};
  /// "" if there is none to speak of.
  std::string default_text = {};
  /// Of a flag of training; else empty.
  std::string group = {};
  bool is_positional = false;
  bool is_required = false;
  /// True if it may be given several times: "PATH...".
  bool is_list = false;
  /// Limits and other flags of every command: not in --help.
  bool is_hidden = false;

  /// Completed by the names of files.
  [[nodiscard]] bool takes_file() const;
  /// Completed by the names of folders.
  [[nodiscard]] bool takes_folder() const;
};

/// One command.
struct CommandDoc {
  /// "ckpt ls"
  std::string name = {};
  std::string help = {};
  std::vector<ArgumentDoc> arguments = {};
  std::vector<std::string> examples = {};
  /// True if lockstep-train runs it.
  bool needs_torch = false;

  /// "ckpt", or empty at the top level.
  [[nodiscard]] std::string group() const;
  /// "ls"
  [[nodiscard]] std::string last_name() const;
};

/// What the parser of `command` takes.
CommandDoc doc_of(const Command& command);

/// The commands that lockstep-train runs, then those of this program.
std::vector<CommandDoc> command_docs();

/// "FILE [KEY]", "PATH..."
std::string positional_text(const CommandDoc& command);

/// "auto, always or never"
std::string either(std::span<const std::string> words);

/// Completion scripts, one for each shell.
std::string bash_completion(std::span<const CommandDoc> commands);
std::string zsh_completion(std::span<const CommandDoc> commands);
std::string fish_completion(std::span<const CommandDoc> commands);

/// The manual page lockstep(1), in the man macros of roff.
std::string manual(std::span<const CommandDoc> commands);

/// The manual page of a command that lockstep-train runs, lockstep-train(1).
std::string manual_of(const CommandDoc& command);

} // namespace lockstep::cli
