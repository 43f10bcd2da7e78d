// SPDX-License-Identifier: BSD-3-Clause
//
// The command line: which command it names, its parser, help and version.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/color.h"
#include "cli/command.h"
#include "cli/exec_train.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/reading_flags.h"
#include "cli/usage_errors.h"
#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"

namespace lockstep::cli {
namespace {

using Args = std::vector<std::string>;

std::string version_text() {
  return format(
      "Lockstep {}\n"
      "compiler  {}, C++{}\n"
      "program   lockstep: no LibTorch linked; lockstep-train has it\n"
      "reads     PyTorch zip checkpoints; CRC-32 and inflate by libdeflate\n",
      kVersion,
      kCompiler,
      __cplusplus / 100 % 100);
}

// What a command line names: a command, and what is left for its parser.
struct Choice {
  const Command* command = nullptr;
  Args args = {};
};

// "--batch_size" is "--batch-size"; "ckpt help ls" is "help ckpt ls".
Args normalize(std::span<const std::string> given) {
  Args args(given.begin(), given.end());
  for (std::string& arg : args) {
    if (arg.starts_with("--")) {
      const auto end = std::ranges::find(arg, '=');
      std::replace(arg.begin(), end, '_', '-');
    }
  }
  if (args.size() > 1 && args[0] == "ckpt" && args[1] == "help") {
    std::swap(args[0], args[1]);
  }
  return args;
}

bool wants(const Args& args, std::string_view flag) {
  return std::ranges::find(args, flag) != args.end();
}

// "ckpt [--json] WORD ...": the command WORD, or `inspect` for the file WORD.
Result<Choice> choose_ckpt(Args args) {
  args.erase(args.begin());
  const auto word = std::ranges::find_if_not(args, is_flag);
  const Command* command =
      word == args.end() ? nullptr : find_command("ckpt", *word);
  if (command != nullptr) {
    args.erase(word);
    return Choice{command, std::move(args)};
  }
  if (word != args.end()) {
    if (auto error = unknown_ckpt_word(*word)) {
      return *std::move(error);
    }
  }
  return Choice{find_command("ckpt", "inspect"), std::move(args)};
}

Result<Choice> choose(Args args) {
  if (args[0] == "ckpt") {
    return choose_ckpt(std::move(args));
  }
  const Command* command = find_command("", args[0]);
  if (command == nullptr) {
    return unknown_command(args[0]);
  }
  args.erase(args.begin());
  return Choice{command, std::move(args)};
}

Result<int> run_parsed(const Runner& runner, Common& common) {
  LOCKSTEP_ASSIGN(common.color, wants_color(common.color_mode));
  apply_reading_flags(common);
  return caught("cli.run", runner);
}

// -o "$OUT" with a variable that is not set must not change the input.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    if (!option->get_lnames().empty() && option->get_items_expected_max() > 0 &&
        std::ranges::find(values, "") != values.end()) {
      throw CLI::ArgumentMismatch(option->get_name() + " has an empty value");
    }
  }
}

// OUT and -o, or -o twice: nobody knows which file was meant.
void refuse_two_outputs(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    if (option->check_lname("output") && values.size() > 1) {
      throw CLI::ValidationError(
          option->get_name(),
          format("two files to write, '{}' and '{}'", values[0], values[1]));
    }
  }
}

// --dtype= would take the next word as its value.
std::optional<Error> empty_flag(const Args& args) {
  const auto found = std::ranges::find_if(args, [](const std::string& arg) {
    return arg.starts_with("--") && arg.ends_with('=');
  });
  return found == args.end()
             ? std::nullopt
             : std::optional(
                   usage_error(format("{} has no value", escape(*found, 200))));
}

int parse_and_run(Choice choice, std::span<const std::string> given) {
  const bool wants_json = wants(choice.args, "--json");
  const Command& command = *choice.command;
  CLI::App app;
  app.option_defaults()->take_last(); // of a repeated flag, as everywhere
  Common common;
  const Runner runner = command.setup(app, common);
  add_common_flags(command, app, common);
  if (const auto error = empty_flag(choice.args);
      error && !app.get_prefix_command()) {
    return print_error(*error, "lockstep.args/1", wants_json);
  }
  std::ranges::reverse(choice.args); // as CLI11 wants them
  try {
    app.parse(choice.args);
    refuse_empty_values(app);
    refuse_two_outputs(app);
    if (app.get_prefix_command()) {
      const std::size_t count = app.remaining_size();
      common.program.assign(
          given.end() - static_cast<std::ptrdiff_t>(count),
          given.end());
    }
  } catch (const CLI::CallForHelp&) {
    print(command_help(doc_of(command)));
    return 0;
  } catch (const CLI::ParseError& error) {
    return print_error(
        explain_parse_error(error, app, command),
        "lockstep.args/1",
        wants_json);
  }
  const auto status = run_parsed(runner, common);
  return status
             ? *status
             : print_error(status.error(), schema_name(command), common.json);
}

// A group or the program without a command prints its help; asking for it is
// no mistake.
std::optional<int> print_overview(const Args& args) {
  const bool is_ckpt = !args.empty() && args[0] == "ckpt";
  const Args rest(args.begin() + (is_ckpt ? 1 : 0), args.end());
  const bool is_asked =
      !rest.empty() && (rest[0] == "--help" || rest[0] == "-h");
  if (!rest.empty() && !is_asked) {
    return std::nullopt;
  }
  print(is_ckpt ? ckpt_help() : program_help());
  return is_asked ? 0 : error_info(ErrorCode::kInvalidArgument).exit_code;
}

} // namespace

int run(std::span<const std::string> given) {
  Args args = normalize(given);
  if (const auto status = print_overview(args)) {
    return *status;
  }
  if (args[0] == "--version" || args[0] == "-V") {
    print(version_text());
    return 0;
  }
  if (is_train_command(args[0])) {
    const Args unchanged(given.begin(), given.end());
    return print_error(exec_train(unchanged), "lockstep.exec/1", false);
  }
  const bool wants_json = wants(args, "--json");
  auto choice = choose(std::move(args));
  return choice ? parse_and_run(*std::move(choice), given)
                : print_error(choice.error(), "lockstep.args/1", wants_json);
}

} // namespace lockstep::cli
