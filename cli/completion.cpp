// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep completion SHELL`: the script that completes commands, flags, files
// and the names of tensors.
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/command_docs.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"

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

Result<int> run_completion(const std::string& shell, const Common& common) {
  for (const Shell& row : kShells) {
    if (row.name != shell) {
      continue;
    }
    const std::string script = row.script(command_docs());
    if (common.json) {
      print_result(
          "lockstep.completion/1",
          Json::object().set("shell", shell).set("script", script));
    } else {
      print(script);
    }
    return 0;
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.completion",
      .message = format(
          "unknown shell '{}'; expected bash, zsh or fish",
          escape(shell))};
}

} // namespace

Runner setup_completion(CLI::App& app, const Common& common) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")->required();
  return [shell, &common] { return run_completion(*shell, common); };
}

Runner setup_man(CLI::App& /*app*/, const Common& common) {
  return [&common]() -> Result<int> {
    const std::string page = manual(command_docs());
    if (common.json) {
      print_result("lockstep.man/1", Json::object().set("roff", page));
    } else {
      print(page);
    }
    return 0;
  };
}

} // namespace lockstep::cli
