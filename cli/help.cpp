// SPDX-License-Identifier: BSD-3-Clause
#include "cli/help.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/exec_train.h"
#include "cli/output.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kColumns = 80;

/// One line of a list: what is typed, and what it does.
struct Row {
  std::string left = {};
  std::string text = {};
};

// "list the tensors" -> "List the tensors."
std::string sentence(std::string text) {
  if (!text.empty()) {
    text.front() = static_cast<char>(
        std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text + ".";
}

// Breaks `text` at spaces; lines after the first begin at column `indent`.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string section(std::string_view title, const std::vector<Row>& rows) {
  constexpr std::size_t kWidest = 28;
  std::size_t width = 0;
  for (const Row& row : rows) {
    if (row.left.size() <= kWidest) {
      width = std::max(width, row.left.size());
    }
  }
  std::string text = rows.empty() ? "" : format("\n{}:\n", title);
  for (const Row& row : rows) {
    const std::size_t begin = width + 4;
    std::string left = "  " + row.left;
    if (row.left.size() > width) {
      left += "\n" + std::string(begin, ' ');
    } else {
      left.resize(begin, ' ');
    }
    text += left + wrapped(row.text, begin) + "\n";
  }
  return text;
}

std::string examples_text(std::span<const std::string> examples) {
  std::string text = "\nExamples:\n";
  for (const std::string& example : examples) {
    text += format("  {}\n", example);
  }
  return text;
}

// Help, the words if the help does not name them, the default.
std::string text_of(const ArgumentDoc& argument) {
  std::string text = argument.help;
  if (argument.is_choice && !argument.words.empty()) {
    text += format(": {}", either(argument.words));
  }
  if (!argument.default_text.empty()) {
    text += format(" [default: {}]", argument.default_text);
  }
  return text;
}

Row row_of(const ArgumentDoc& argument) {
  if (argument.is_positional) {
    return {.left = argument.name, .text = text_of(argument)};
  }
  std::string left =
      argument.short_name.empty() ? "    " : argument.short_name + ", ";
  left += argument.name;
  left += argument.value.empty() ? "" : " " + argument.value;
  return {.left = std::move(left), .text = text_of(argument)};
}

// "help" and what lockstep-train runs are known before a parser is made.
std::vector<Row> command_rows(std::string_view group) {
  std::vector<Row> rows;
  if (group.empty()) {
    const std::string missing =
        train_program().empty() ? " (not installed)" : "";
    for (const train::TrainCommand& command : train::kTrainCommands) {
      rows.push_back(
          {.left = std::string(command.name),
           .text = std::string(command.help) + missing});
    }
    rows.push_back({.left = "ckpt", .text = std::string(kCkptHelp)});
  }
  for (const Command& command : commands()) {
    if (command.group == group) {
      rows.push_back(
          {.left = std::string(command.name),
           .text = std::string(command.help)});
    }
  }
  return rows;
}

const std::vector<Row> kProgramFlags{
    {.left = "-h, --help", .text = "print this help"},
    {.left = "-V, --version", .text = "print the version"}};

struct HelpArgs {
  std::vector<std::string> words = {};
};

Error no_such_command(const std::vector<std::string>& words) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.help",
      .message = format("there is no command '{}'", escape(join(words, " "))),
      .hint = "run 'lockstep --help' or 'lockstep ckpt --help' for all"};
}

Result<std::string> help_of(const std::vector<std::string>& words) {
  if (words.empty()) {
    return program_help();
  }
  const bool is_ckpt = words[0] == "ckpt";
  if (is_ckpt && words.size() == 1) {
    return ckpt_help();
  }
  const Command* command =
      is_ckpt ? find_command("ckpt", words[1]) : find_command("", words[0]);
  if (command == nullptr) {
    return no_such_command(words);
  }
  return command_help(doc_of(*command));
}

Result<int> run_help(const HelpArgs& args, const Common& common) {
  if (!args.words.empty() && is_train_command(args.words[0])) {
    return exec_train({args.words[0], "--help"});
  }
  LOCKSTEP_ASSIGN(const std::string text, help_of(args.words));
  common.json
      ? print_result("lockstep.help/1", Json::object().set("text", text))
      : print(text);
  return 0;
}

} // namespace

std::string program_help() {
  return "Data-parallel training and portable checkpoints for C++.\n\n"
         "Usage: lockstep COMMAND [ARGUMENTS]\n" +
         section("Commands", command_rows("")) +
         section("Options", kProgramFlags) +
         "\n'lockstep help COMMAND' says more about a command.\n" +
         examples_text(std::vector<std::string>{
             "lockstep ckpt checkpoint.pth.tar",
             "lockstep train --model resnet18 --devices 'cpu*2'"});
}

std::string ckpt_help() {
  return sentence(std::string(kCkptHelp)) +
         "\n\nUsage: lockstep ckpt COMMAND [ARGUMENTS]\n"
         "       lockstep ckpt FILE         (short for 'lockstep ckpt inspect "
         "FILE')\n" +
         section("Commands", command_rows("ckpt")) +
         "\n'lockstep ckpt help COMMAND' says more about a command.\n" +
         examples_text(std::vector<std::string>{
             "lockstep ckpt checkpoint.pth.tar",
             "lockstep ckpt show checkpoint.pth.tar state_dict.fc.weight"});
}

std::string command_help(const CommandDoc& command) {
  std::vector<Row> positional;
  std::vector<Row> flags;
  bool reads_files = false;
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      positional.push_back(row_of(argument));
    } else if (!argument.is_hidden) {
      flags.push_back(row_of(argument));
    }
    reads_files |= argument.name == "--strict" && command.name != "ckpt limits";
  }
  std::string text = sentence(command.help) + "\n\n";
  text += format("Usage: lockstep {} [OPTIONS] ", command.name);
  text += positional_text(command);
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n" + section("Arguments", positional) + section("Options", flags);
  text += reads_files ? "\nWhat a file may ask for can be limited: 'lockstep "
                        "ckpt limits' lists the flags.\n"
                      : "";
  return text + examples_text(command.examples);
}

Runner setup_help(CLI::App& app, const Common& common) {
  auto args = std::make_shared<HelpArgs>();
  app.add_option("COMMAND", args->words, "name of a command: 'ckpt ls'");
  return [args, &common] { return run_help(*args, common); };
}

} // namespace lockstep::cli
