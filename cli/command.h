// SPDX-License-Identifier: BSD-3-Clause
//
// What every subcommand of `lockstep` gets and gives. One file per subcommand;
// the table in commands.cpp names them all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/json.h"
#include "lockstep/base/result.h"

namespace lockstep::cli {

/// The parsed command line of one subcommand.
struct Request {
  /// "-" is standard input.
  std::string file = {};
  std::string key = {};
  std::string code = {};
  std::uint64_t head = 8;
  bool json = false;
  bool strict = false;
};

/// Prints its result to standard output and gives the exit status.
using Handler = Result<int> (*)(const Request& request);

/// Which arguments a command takes.
enum class Takes { kFile, kFileAndKey, kCode };

/// One row of the command table.
struct Command {
  /// "ckpt" for its subcommands, empty at the top level.
  std::string_view group = {};
  std::string_view name = {};
  std::string_view help = {};
  Takes takes = Takes::kFile;
  Handler run = nullptr;
};

std::span<const Command> commands();

Result<int> run_inspect(const Request& request);
Result<int> run_ls(const Request& request);
Result<int> run_show(const Request& request);
Result<int> run_verify(const Request& request);
Result<int> run_explain(const Request& request);

/// Schema of a command's JSON: "lockstep.ckpt.ls/1".
std::string schema_name(const Command& command);

/// Parses `args` (without the program's name), runs the command and prints
/// what went wrong. Returns the exit status.
int run(std::span<const std::string> args);

} // namespace lockstep::cli
