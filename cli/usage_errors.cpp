// SPDX-License-Identifier: BSD-3-Clause
#include "cli/usage_errors.h"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command_docs.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli {
namespace {

std::vector<std::string> names_of(std::string_view group) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.group == group) {
      names.emplace_back(command.name);
    }
  }
  if (group.empty()) {
    names.emplace_back("ckpt");
    for (const train::TrainCommand& command : train::kTrainCommands) {
      names.emplace_back(command.name);
    }
  }
  return names;
}

// True if the word is a path rather than a command.
bool looks_like_file(std::string_view word) {
  return word.find_first_of("./") != std::string_view::npos;
}

// Long flags that the parser knows, and whose name is no secret.
std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// The parser's complaint, and whom it is about.
struct Complaint {
  CLI::ExitCodes kind = CLI::ExitCodes::BaseClass;
  std::string text = {};
  const CLI::Option* option = nullptr;
  ArgumentDoc doc = {};
};

// The option that the text names: the longest name in it.
const CLI::Option* option_in(const std::string& text, const CLI::App& app) {
  const CLI::Option* found = nullptr;
  std::size_t longest = 0;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name.size() > longest && text.find(name) != std::string::npos) {
      found = option;
      longest = name.size();
    }
  }
  return found;
}

const CLI::Option* first_missing(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0) {
      return option;
    }
  }
  return nullptr;
}

ArgumentDoc doc_in(const CommandDoc& command, const CLI::Option* option) {
  const std::string name = option == nullptr ? ""
                           : option->get_lnames().empty()
                               ? option->get_name(true)
                               : "--" + option->get_lnames().front();
  const auto found =
      std::ranges::find(command.arguments, name, &ArgumentDoc::name);
  return found == command.arguments.end() ? ArgumentDoc{.name = name} : *found;
}

// What the option was given; of several values the last.
std::string given(const Complaint& complaint) {
  return complaint.option == nullptr || complaint.option->results().empty()
             ? ""
             : escape(complaint.option->results().back());
}

std::string message_of(const Complaint& complaint) {
  const ArgumentDoc& doc = complaint.doc;
  if (complaint.kind == CLI::ExitCodes::RequiredError) {
    return doc.help.empty() ? format("{} is missing", doc.name)
                            : format("{} is missing ({})", doc.name, doc.help);
  }
  if (complaint.kind == CLI::ExitCodes::ConversionError) {
    return format(
        "{}: expected a {}, got '{}'",
        doc.name,
        doc.value == "X" ? "number" : "whole number",
        given(complaint));
  }
  if (complaint.kind == CLI::ExitCodes::ValidationError && !doc.words.empty()) {
    return format(
        "{}: expected {}, got '{}'",
        doc.name,
        either(doc.words),
        given(complaint));
  }
  if (complaint.kind == CLI::ExitCodes::ArgumentMismatch) {
    return doc.value.empty()
               ? format("{} takes no value", doc.name)
               : format("{} needs a value, {}", doc.name, doc.value);
  }
  return escape(complaint.text, 200);
}

} // namespace

Error usage_error(std::string message, std::string hint) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = std::move(message),
      .hint = std::move(hint)};
}

bool is_flag(std::string_view arg) {
  return arg.size() > 1 && arg.starts_with('-');
}

std::string did_you_mean(
    std::string_view word,
    std::span<const std::string> known,
    std::string_view else_run) {
  const std::string near = nearest(word, known);
  return near.empty() ? format("run '{}'", else_run)
                      : format("did you mean '{}'?", near);
}

Error unknown_command(const std::string& word) {
  const std::vector<std::string> names = names_of("");
  if (is_flag(word)) {
    return usage_error(
        format("unknown flag '{}'", escape(word)),
        did_you_mean(word, std::vector<std::string>{"--help", "--version"}));
  }
  if (looks_like_file(word) || real_fs().stat(word)) {
    return usage_error(
        format("'{}' is not a command", escape(word)),
        format("'lockstep ckpt {}' looks into a file", escape(word)));
  }
  // `verify FILE`: the command is there, one level below.
  if (nearest(word, names).empty()) {
    const std::string below = nearest(word, names_of("ckpt"));
    if (!below.empty()) {
      return usage_error(
          format("unknown command '{}'", escape(word)),
          format("did you mean 'ckpt {}'?", below));
    }
  }
  return usage_error(
      format("unknown command '{}'", escape(word)),
      did_you_mean(word, names));
}

std::optional<Error> unknown_ckpt_word(const std::string& word) {
  if (word == "-" || looks_like_file(word) || real_fs().stat(word)) {
    return std::nullopt;
  }
  const std::string near = nearest(word, names_of("ckpt"));
  if (!near.empty()) {
    return usage_error(
        format("unknown command 'ckpt {}'", escape(word)),
        format("did you mean 'ckpt {}'?", near));
  }
  return Error{
      .code = ErrorCode::kNotFound,
      .op = "cli.args",
      .message = format(
          "'{}' is neither a command of 'lockstep ckpt' nor a file",
          escape(word)),
      .hint = "run 'lockstep ckpt --help'"};
}

Error explain_parse_error(
    const CLI::ParseError& error,
    const CLI::App& app,
    const Command& command) {
  const std::string help = format("lockstep {} --help", full_name(command));
  // Behind the flags of a command that runs a program stand the program's.
  const auto rest = app.get_prefix_command() ? std::vector<std::string>()
                                             : app.remaining(true);
  const auto flag = std::ranges::find_if(rest, [](const std::string& word) {
    return is_flag(word) && word != "--";
  });
  if (flag != rest.end()) {
    return usage_error(
        format("unknown flag '{}'", escape(*flag)),
        did_you_mean(*flag, flags_of(app), help));
  }
  const std::string hint = format("run '{}'", help);
  // Of another error what follows was not read.
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (!rest.empty() && kind == CLI::ExitCodes::ExtrasError) {
    return usage_error(
        format("unexpected argument '{}'", escape(rest.front())),
        hint);
  }
  Complaint complaint{.kind = kind, .text = error.what()};
  complaint.option = complaint.kind == CLI::ExitCodes::RequiredError
                         ? first_missing(app)
                         : option_in(complaint.text, app);
  complaint.doc = doc_in(doc_of(command), complaint.option);
  return usage_error(message_of(complaint), hint);
}

} // namespace lockstep::cli
