// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/tensor/compat.h"
#include "lockstep/train/settings/commands.h"

namespace lockstep::cli_train {
namespace {

using train::kTrainCommands;
using Runner = int (*)(Arguments);

// One for each row of the table, in its order.
constexpr std::array<Runner, kTrainCommands.size()> kRunners{
    train_command,
    summary_command,
    bench_command};
static_assert(std::ranges::find(kRunners, nullptr) == kRunners.end());

int print_version() {
  std::printf(
      "lockstep-train %s, LibTorch %s\n",
      std::string(kVersion).c_str(),
      torch_library_version().c_str());
  return 0;
}

int print_help() {
  std::printf("Usage: lockstep-train COMMAND [flags]\n\n");
  for (const train::TrainCommand& command : kTrainCommands) {
    std::fputs(
        format("  {:<8} {}\n", command.name, command.help).c_str(),
        stdout);
  }
  std::printf("\n'lockstep-train COMMAND --help' lists the flags.\n");
  return 0;
}

} // namespace

int run_command(Arguments args) {
  const std::string name = args.empty() ? "--help" : args.front();
  if (name == "--version" || name == "-V") {
    return print_version();
  }
  if (name == "--help" || name == "-h") {
    return print_help();
  }
  const auto* found =
      std::ranges::find(kTrainCommands, name, &train::TrainCommand::name);
  if (found == kTrainCommands.end()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train",
         .message = format("unknown sub-command '{}'", escape(name)),
         .hint = "'lockstep-train --help' lists them"});
  }
  check_torch_version();
  return kRunners.at(static_cast<std::size_t>(found - kTrainCommands.begin()))(
      args.subspan(1));
}

} // namespace lockstep::cli_train
