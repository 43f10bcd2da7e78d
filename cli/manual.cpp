// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "cli/command_docs.h"
#include "cli/reading_flags.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::cli {
namespace {

// roff reads backslashes, and dots and quotes at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    at_start = c == '\n';
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string synopsis(const CommandDoc& command) {
  const std::string arguments = positional_text(command);
  return ".B " + roff("lockstep " + command.name) +
         (arguments.empty() ? "" : " " + roff(arguments)) + "\n";
}

std::string argument_text(const ArgumentDoc& argument) {
  std::string head =
      argument.short_name.empty() ? "" : bold(argument.short_name) + ", ";
  head += bold(argument.name);
  if (!argument.value.empty() && !argument.is_positional) {
    head += " \\fI" + roff(argument.value) + "\\fR";
  }
  std::string text = argument.help;
  if (argument.is_choice && !argument.words.empty()) {
    text += ": " + either(argument.words);
  }
  if (!argument.default_text.empty()) {
    text += " [default: " + argument.default_text + "]";
  }
  return ".TP\n" + head + "\n" + roff(text) + "\n";
}

std::string examples_text(const CommandDoc& command) {
  std::string text = ".nf\n";
  for (const std::string& example : command.examples) {
    text += roff("  " + example) + "\n";
  }
  return text + ".fi\n";
}

std::string command_text(const CommandDoc& command) {
  std::string text = ".SS " + roff(command.name) + "\n";
  text += roff(command.help) + ".\n";
  if (command.needs_torch) {
    text += "Its flags are in lockstep\\-" + roff(command.name) + "(1).\n";
  }
  for (const ArgumentDoc& argument : command.arguments) {
    if (!command.needs_torch && !argument.is_hidden &&
        argument.name != "--help") {
      text += argument_text(argument);
    }
  }
  return text + ".PP\n" + examples_text(command);
}

std::string limits_text() {
  std::string text =
      ".SH LIMITS\n"
      "What a file may ask for. Every command that reads a checkpoint takes "
      "these flags.\n";
  for (const ReadingSwitch& row : reading_switches()) {
    text += format(
        ".TP\n{} {}\n{}.\n",
        bold(row.flag),
        roff(row.value),
        roff(row.help));
  }
  const ckpt::Limits limits;
  for (const ckpt::LimitInfo& row : ckpt::limit_table()) {
    text += format(
        ".TP\n\\fB{}\\fR \\fIVALUE\\fR\n{}: {}. Default {}.\n",
        roff(format("--{}", row.name)),
        roff(row.unit),
        roff(row.help),
        with_commas(limits.*row.member));
  }
  return text;
}

std::string exit_text() {
  std::string text =
      ".SH EXIT STATUS\n.TP\n.B 0\nDone; nothing was found or differs.\n";
  for (const ErrorInfo& row : error_table()) {
    text += format(
        ".TP\n.B {}\n{} ({}).\n",
        row.exit_code,
        roff(row.meaning),
        roff(row.name));
  }
  return text + ".TP\n.B 128 + n\nKilled by signal n.\n";
}

} // namespace

std::string manual(std::span<const CommandDoc> commands) {
  std::string text = format(
      ".TH LOCKSTEP 1 \"\" \"Lockstep {}\" \"User Commands\"\n"
      ".SH NAME\nlockstep \\- data\\-parallel training and portable "
      "checkpoints\n.SH SYNOPSIS\n.nf\n",
      kVersion);
  for (const CommandDoc& command : commands) {
    text += synopsis(command);
  }
  text +=
      ".fi\n.SH DESCRIPTION\n"
      "Looks into the checkpoint files of PyTorch and others without Python "
      "and without LibTorch, and trains networks with the program "
      "lockstep\\-train. Nothing in a file is executed. Results go to standard "
      "output, messages to standard error; \\fB\\-\\-json\\fR prints one JSON "
      "object. The file \\fB\\-\\fR is standard input.\n"
      ".SH COMMANDS\n";
  for (const CommandDoc& command : commands) {
    text += command_text(command);
  }
  return text + limits_text() + exit_text() +
         ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours.\n"
         ".SH SEE ALSO\nlockstep explain CODE prints what an error code means "
         "and what to do.\n";
}

std::string manual_of(const CommandDoc& command) {
  std::string title = "lockstep-" + command.name;
  std::string text = format(
      ".TH {} 1 \"\" \"Lockstep {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}[flags]\n.SH DESCRIPTION\n"
      "Underscores in flags work like hyphens. The program lockstep\\-train "
      "runs this command.\n",
      roff(title),
      kVersion,
      roff(title),
      roff(command.help),
      synopsis(command));
  std::string group;
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      continue;
    }
    if (argument.group != group) {
      group = argument.group;
      text += format(".SH \"{}\"\n", roff(group));
    }
    text += argument_text(argument);
  }
  return text + ".SH EXAMPLES\n" + examples_text(command) +
         ".SH SEE ALSO\n.BR lockstep (1)\n";
}

} // namespace lockstep::cli
