// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "cli/command_docs.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/ckpt/limits.h"

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

std::string synopsis(const CommandDoc& command) {
  std::string line = "lockstep ";
  line +=
      command.group.empty() ? command.name : command.group + " " + command.name;
  std::string text = ".B " + roff(line);
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      text += argument.is_required ? format(" {}", roff(argument.name))
                                   : format(" [{}]", roff(argument.name));
    }
  }
  return text + "\n";
}

std::string argument_text(const ArgumentDoc& argument) {
  std::string head;
  if (!argument.short_name.empty()) {
    head += "\\fB" + roff(argument.short_name) + "\\fR, ";
  }
  head += "\\fB" + roff(argument.name) + "\\fR";
  head +=
      argument.takes_value && !argument.is_positional ? " \\fIVALUE\\fR" : "";
  return ".TP\n" + head + "\n" + roff(argument.help) + "\n";
}

std::string command_text(const CommandDoc& command) {
  std::string text =
      ".SS " +
      roff(
          command.group.empty() ? command.name
                                : command.group + " " + command.name) +
      "\n";
  text += roff(command.help) + ".\n";
  for (const ArgumentDoc& argument : command.arguments) {
    if (!argument.is_common && argument.name != "--help") {
      text += argument_text(argument);
    }
  }
  return text;
}

std::string limits_text() {
  std::string text =
      ".SH LIMITS\n"
      "What a file may ask for. Every command that reads a checkpoint takes "
      "these flags.\n"
      ".TP\n\\fB\\-\\-strict\\fR\nWarnings are errors.\n"
      ".TP\n\\fB\\-\\-lenient\\fR\nRead archives whose records are in no "
      "folder.\n"
      ".TP\n\\fB\\-\\-allow\\-expand\\fR\nNo bound on what a small file "
      "expands to.\n";
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

} // namespace lockstep::cli
