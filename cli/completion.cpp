// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep completion SHELL`: the script that completes commands, flags, files
// and the names of tensors; `lockstep man`.
#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/command_docs.h"
#include "cli/output.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli {
namespace {

struct Shell {
  std::string_view name = {};
  std::string (*script)(std::span<const CommandDoc>) = nullptr;
};

constexpr std::array kShells{
    Shell{"bash", bash_completion},
    Shell{"zsh", zsh_completion},
    Shell{"fish", fish_completion},
};

struct ManArgs {
  std::string command = {};
};

Result<int> run_completion(const std::string& shell, const Common& common) {
  const auto* row = std::ranges::find(kShells, shell, &Shell::name);
  const std::string script = row->script(command_docs());
  if (common.json) {
    print_result(
        "lockstep.completion/1",
        Json::object().set("shell", shell).set("script", script));
  } else {
    print(script);
  }
  return 0;
}

Result<int> run_man(const ManArgs& args, const Common& common) {
  const std::vector<CommandDoc> docs = command_docs();
  const auto command = std::ranges::find(docs, args.command, &CommandDoc::name);
  const std::string page =
      command == docs.end() ? manual(docs) : manual_of(*command);
  if (common.json) {
    print_result("lockstep.man/1", Json::object().set("roff", page));
  } else {
    print(page);
  }
  return 0;
}

} // namespace

Runner setup_completion(CLI::App& app, const Common& common) {
  auto shell = std::make_shared<std::string>();
  std::vector<std::string> names;
  names.reserve(kShells.size());
  for (const Shell& row : kShells) {
    names.emplace_back(row.name);
  }
  app.add_option("SHELL", *shell, "shell that reads the script")
      ->required()
      ->check(CLI::IsMember(names));
  return [shell, &common] { return run_completion(*shell, common); };
}

Runner setup_man(CLI::App& app, const Common& common) {
  auto args = std::make_shared<ManArgs>();
  std::vector<std::string> names;
  names.reserve(train::kTrainCommands.size());
  for (const train::TrainCommand& command : train::kTrainCommands) {
    names.emplace_back(command.name);
  }
  app.add_option("COMMAND", args->command, "a command with a page of its own")
      ->check(CLI::IsMember(names));
  return [args, &common] { return run_man(*args, common); };
}

} // namespace lockstep::cli
