// SPDX-License-Identifier: BSD-3-Clause
//
// What every subcommand of `lockstep` gets and gives. One file per subcommand;
// the table in commands.cpp names them all.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/load.h"

namespace CLI {
class App;
} // namespace CLI

namespace lockstep::cli {

/// Flags that every command has.
struct Common {
  /// One JSON object on standard output instead of text.
  bool json = false;
  /// --color: auto, always or never.
  std::string color_mode = "auto";
  /// True if standard output gets colours.
  bool color = false;
  /// How checkpoints are read: limits, --strict, --lenient.
  ckpt::LoadOptions load = {.use_mmap = false};
  /// What follows the flags of a command that runs a program, as given.
  std::vector<std::string> program = {};
  /// --allow-expand, which changes `load.limits`.
  bool allow_expand = false;
};

/// Runs the parsed command: prints its result to standard output and gives the
/// exit status.
using Runner = std::function<Result<int>()>;

/// Declares a command's arguments on `app`, which keeps pointers into what the
/// runner owns. `common` outlives the runner.
using Setup = Runner (*)(CLI::App& app, const Common& common);

/// One row of the command table.
struct Command {
  /// "ckpt" for its subcommands, empty at the top level.
  std::string_view group = {};
  std::string_view name = {};
  std::string_view help = {};
  Setup setup = nullptr;
  /// Command lines that use it.
  std::array<std::string_view, 2> examples = {};
};

std::span<const Command> commands();

/// What `lockstep ckpt` is for.
inline constexpr std::string_view kCkptHelp =
    "look into checkpoint files, compare, convert and mend them";

/// Null if there is none.
const Command* find_command(std::string_view group, std::string_view name);

/// "ckpt ls"
std::string full_name(const Command& command);

Runner setup_inspect(CLI::App& app, const Common& common);
Runner setup_ls(CLI::App& app, const Common& common);
Runner setup_tree(CLI::App& app, const Common& common);
Runner setup_show(CLI::App& app, const Common& common);
Runner setup_diff(CLI::App& app, const Common& common);
Runner setup_digest(CLI::App& app, const Common& common);
Runner setup_optim(CLI::App& app, const Common& common);
Runner setup_source(CLI::App& app, const Common& common);
Runner setup_extract_model(CLI::App& app, const Common& common);
Runner setup_convert(CLI::App& app, const Common& common);
Runner setup_strip(CLI::App& app, const Common& common);
Runner setup_prefix(CLI::App& app, const Common& common);
Runner setup_rename(CLI::App& app, const Common& common);
Runner setup_pick(CLI::App& app, const Common& common);
Runner setup_drop(CLI::App& app, const Common& common);
Runner setup_match(CLI::App& app, const Common& common);
Runner setup_average(CLI::App& app, const Common& common);
Runner setup_merge(CLI::App& app, const Common& common);
Runner setup_verify(CLI::App& app, const Common& common);
Runner setup_repair(CLI::App& app, const Common& common);
Runner setup_scan(CLI::App& app, const Common& common);
Runner setup_limits(CLI::App& app, const Common& common);
Runner setup_doctor(CLI::App& app, const Common& common);
Runner setup_explain(CLI::App& app, const Common& common);
Runner setup_completion(CLI::App& app, const Common& common);
Runner setup_man(CLI::App& app, const Common& common);
Runner setup_run(CLI::App& app, const Common& common);
Runner setup_runs(CLI::App& app, const Common& common);
Runner setup_help(CLI::App& app, const Common& common);

/// Group of flags that --help leaves out; the manual and `lockstep ckpt limits`
/// show them. Not "": CLI11 would not name them in its complaints.
inline constexpr const char* kHiddenGroup = "hidden";

/// Declares the flags that `command` has besides its own.
void add_common_flags(const Command& command, CLI::App& app, Common& common);

/// Schema of a command's JSON: "lockstep.ckpt.ls/1".
std::string schema_name(const Command& command);

/// Parses `args` (without the program's name), runs the command and prints
/// what went wrong. Returns the exit status.
int run(std::span<const std::string> args);

} // namespace lockstep::cli
