// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/commands.h"

#include <algorithm>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/tensor/compat.h"

namespace lockstep::cli_train {
namespace {

struct Command {
  std::string_view name = {};
  std::string_view help = {};
  int (*run)(Arguments) = nullptr;
};

constexpr Command kCommands[] = {
    {"train", "train a model on one or several devices", train_command},
};

int print_version() {
  std::printf(
      "lockstep-train %s, LibTorch %s\n",
      std::string(kVersion).c_str(),
      torch_library_version().c_str());
  return 0;
}

int print_help() {
  std::printf("Usage: lockstep-train COMMAND [flags]\n\n");
  for (const Command& command : kCommands) {
    std::printf(
        "  %-8s %s\n",
        std::string(command.name).c_str(),
        std::string(command.help).c_str());
  }
  std::printf("\n'lockstep-train COMMAND --help' lists the flags.\n");
  return 0;
}

} // namespace

int run_command(Arguments args) {
  const std::string name = args.empty() ? "--help" : args.front();
  if (name == "--version") {
    return print_version();
  }
  if (name == "--help" || name == "-h") {
    return print_help();
  }
  const auto* found = std::ranges::find(kCommands, name, &Command::name);
  if (found == std::end(kCommands)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train",
         .message = format("unknown sub-command '{}'", escape(name)),
         .hint = "'lockstep-train --help' lists them"});
  }
  check_torch_version();
  return found->run(args.subspan(1));
}

} // namespace lockstep::cli_train
