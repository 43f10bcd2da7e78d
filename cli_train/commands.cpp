// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli_train/torch_facts.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli_train {
namespace {

using train::kTrainCommands;
using Runner = int (*)(Arguments);

// One for each row of the table, in its order.
constexpr std::array<Runner, kTrainCommands.size()> kRunners{
    train_command,
    summary_command,
    bench_command,
    predict_command,
    eval_command,
    data_command};
static_assert(std::ranges::find(kRunners, nullptr) == kRunners.end());

std::string version_text() {
  return format(
      "lockstep-train {}, LibTorch {}\n",
      kVersion,
      torch_library_version());
}

std::string overview_text() {
  std::string text = "Usage: lockstep-train COMMAND [flags]\n\n";
  for (const train::TrainCommand& command : kTrainCommands) {
    text += format("  {:<8} {}\n", command.name, command.help);
  }
  return text + "\n'lockstep-train COMMAND --help' lists the flags.\n";
}

} // namespace

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    raise(
        {.code = ErrorCode::kIo,
         .op = "train.print",
         .message = "standard output took only a part of the text",
         .hint = "its disk may be full"});
  }
}

int run_command(Arguments args) {
  const std::string name = args.empty() ? "--help" : args.front();
  if (name == "--version" || name == "-V") {
    print(version_text());
    return 0;
  }
  if (name == "--facts") { // for `lockstep doctor`
    print(torch_facts());
    return 0;
  }
  if (name == "--help" || name == "-h") {
    print(overview_text());
    return 0;
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
