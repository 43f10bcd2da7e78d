// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command_docs.h"

#include <algorithm>
#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace lockstep::cli {
namespace {

// What lockstep-train does; its flags are its own.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4>
    kTrainCommands{{
        {"train", "train a network"},
        {"bench", "measure this machine"},
        {"doctor", "check this machine and the installation"},
        {"summary", "layers and parameters of a network"},
    }};

ArgumentDoc doc_of(const CLI::Option& option) {
  ArgumentDoc doc{
      .help = option.get_description(),
      .is_required = option.get_required(),
      .takes_value = option.get_items_expected_max() != 0,
      .is_common = option.get_group().empty()};
  if (!option.get_lnames().empty()) {
    doc.name = "--" + option.get_lnames().front();
  } else {
    doc.name = option.get_name(/*positional=*/true);
    doc.is_positional = true;
  }
  if (!option.get_snames().empty()) {
    doc.short_name = "-" + option.get_snames().front();
  }
  return doc;
}

CommandDoc doc_of(const Command& command) {
  CommandDoc doc{
      .group = std::string(command.group),
      .name = std::string(command.name),
      .help = std::string(command.help)};
  Common common;
  CLI::App app;
  const Runner runner = command.setup(app, common);
  add_common_flags(command, app, common);
  for (const CLI::Option* option : app.get_options()) {
    doc.arguments.push_back(doc_of(*option));
  }
  std::ranges::stable_sort(doc.arguments, {}, [](const ArgumentDoc& argument) {
    return argument.is_positional ? 0 : argument.is_common ? 2 : 1;
  });
  return doc;
}

} // namespace

std::vector<CommandDoc> command_docs() {
  std::vector<CommandDoc> docs;
  for (const Command& command : commands()) {
    docs.push_back(doc_of(command));
  }
  for (const auto& [name, help] : kTrainCommands) {
    docs.push_back({.name = std::string(name), .help = std::string(help)});
  }
  return docs;
}

} // namespace lockstep::cli
