// SPDX-License-Identifier: BSD-3-Clause
#include "cli/command_docs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <CLI/CLI.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli {
namespace {

// What a flag's value is called.
struct ValueName {
  std::string_view flag = {};
  std::string_view value = {};
};
constexpr std::array kValueNames{
    ValueName{"--atol", "X"},
    ValueName{"--color", "WHEN"},
    ValueName{"--dtype", "TYPE"},
    ValueName{"--filter", "REGEX"},
    ValueName{"--key", "KEY"},
    ValueName{"--map", "FROM=TO"},
    ValueName{"--map-location", "DEVICE"},
    ValueName{"--name", "NAME"},
    ValueName{"--output", "FILE"},
    ValueName{"--local-ranks-filter", "RANKS"},
    ValueName{"--log-dir", "FOLDER"},
    ValueName{"--master-addr", "HOST"},
    ValueName{"--nnodes", "N"},
    ValueName{"--nproc-per-node", "N"},
    ValueName{"--prefix", "PREFIX"},
    ValueName{"--rdzv-backend", "NAME"},
    ValueName{"--rdzv-endpoint", "HOST:PORT"},
    ValueName{"--rdzv-id", "NAME"},
    ValueName{"--redirects", "STREAMS"},
    ValueName{"--role", "NAME"},
    ValueName{"--shutdown-timeout", "X"},
    ValueName{"--signals-to-handle", "SIGNALS"},
    ValueName{"--tee", "STREAMS"},
    ValueName{"--rtol", "X"},
    ValueName{"--salvage", "FILE"},
    ValueName{"--shard", "SIZE"},
    ValueName{"--sort", "ORDER"},
    ValueName{"--to", "FORMAT"},
};
constexpr std::array kFileNames{
    "A",
    "B",
    "FILE",
    "IMAGES",
    "IN",
    "MODEL",
    "OUT",
    "OUTPUT",
    "PATH"};
constexpr std::array kFolderNames{"DIR", "FOLDER"};

std::string value_name(const std::string& flag, std::string_view type) {
  const auto* row = std::ranges::find(kValueNames, flag, &ValueName::flag);
  return row != kValueNames.end()   ? std::string(row->value)
         : type.starts_with("TEXT") ? "VALUE"
                                    : "N";
}

// "TEXT:{auto,always}" -> auto, always.
std::vector<std::string> words_of(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.rfind('}');
  return begin == std::string::npos || end == std::string::npos
             ? std::vector<std::string>{}
             : split(type.substr(begin + 1, end - begin - 1), ',');
}

// Nothing and zero are no defaults to speak of: the help says what they mean.
std::string default_of(const CLI::Option& option) {
  const std::string text = option.get_default_str();
  const bool is_empty = text.empty() || text == "0" || text == "[]" ||
                        text == "{}" || text == "\"\"";
  return is_empty || option.get_items_expected_max() == 0 ? "" : text;
}

ArgumentDoc doc_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  ArgumentDoc doc{
      .words = words_of(type),
      .help = option.get_description(),
      .default_text = default_of(option),
      .is_required = option.get_required(),
      .is_list = option.get_expected_max() > 1,
      .is_hidden = option.get_group() == kHiddenGroup};
  // OUT that may be given as --output, too, is shown where it has to be given.
  if (option.get_lnames().empty() ||
      (option.get_positional() && doc.is_required)) {
    doc.name = option.get_name(/*positional=*/true);
    doc.value = doc.name;
    doc.is_positional = true;
    return doc;
  }
  doc.name = "--" + option.get_lnames().front();
  if (option.get_items_expected_max() != 0) {
    doc.value = value_name(doc.name, type);
  }
  if (!option.get_snames().empty()) {
    doc.short_name = "-" + option.get_snames().front();
  }
  return doc;
}

std::vector<std::string> words_or_none(std::string_view text) {
  return text.empty() ? std::vector<std::string>{} : split(text, '|');
}

// "PATH|auto|best": words in small letters may be given as they are.
std::vector<std::string> likely_words(const train::Flag& flag) {
  std::vector<std::string> words = words_or_none(flag.choices);
  for (std::string& word : words_or_none(flag.suggestions)) {
    words.push_back(std::move(word));
  }
  for (std::string& part : words_or_none(flag.value)) {
    if (std::islower(static_cast<unsigned char>(part.front())) != 0) {
      words.push_back(std::move(part));
    }
  }
  return words;
}

ArgumentDoc doc_of(const train::Flag& flag) {
  ArgumentDoc doc{
      .name = format("--{}", flag.name),
      .value = std::string(flag.value),
      .words = likely_words(flag),
      .is_choice = !flag.choices.empty(),
      .help = std::string(flag.help),
      .default_text = flag.is_switch() ? "" : train::get_flag({}, flag),
      .group = std::string(train::group_title(flag.group))};
  for (const std::string& alias : split(flag.aliases, ',')) {
    if (alias.size() == 2) {
      doc.short_name = alias;
    }
  }
  return doc;
}

// `train` takes the flags of the table, and what its program adds to them.
std::vector<ArgumentDoc> train_arguments() {
  std::vector<ArgumentDoc> arguments;
  for (const train::Flag& flag : train::flag_table()) {
    arguments.push_back(doc_of(flag));
  }
  arguments.push_back(
      {.name = "--config",
       .short_name = "-c",
       .value = "FILE",
       .help = "settings from a file (args.yaml of a run); flags win over it",
       .group = "General"});
  arguments.push_back(
      {.name = "--recipe",
       .value = "NAME",
       .words = {train::kRecipes.begin(), train::kRecipes.end()},
       .help = "settings that come with Lockstep, in place of the defaults",
       .group = "General"});
  arguments.push_back(
      {.name = "--dry-run",
       .help =
           "print what would run, and every setting with where it comes from",
       .group = "General"});
  arguments.push_back(
      {.name = "--dump-config",
       .help = "print the settings as such a file and stop",
       .group = "General"});
  return arguments;
}

// "DIR" of "[DIR]", a list of "IMAGES...".
ArgumentDoc positional_doc(std::string_view text) {
  ArgumentDoc doc{
      .name = std::string(text),
      .is_positional = true,
      .is_required = !text.starts_with('['),
      .is_list = text.ends_with("...")};
  std::erase_if(doc.name, [](char c) {
    return c == '[' || c == ']' || c == '.';
  });
  doc.value = doc.name;
  if (doc.name == "MODEL") {
    doc.words = words_or_none(train::find_key("model")->suggestions);
    doc.value = "NAME";
    doc.is_choice = false;
  }
  return doc;
}

CommandDoc doc_of(const train::TrainCommand& command) {
  CommandDoc doc{
      .name = std::string(command.name),
      .help = std::string(command.help),
      .examples = {command.examples.begin(), command.examples.end()},
      .needs_torch = true};
  for (const std::string& word : split(command.arguments, ' ')) {
    doc.arguments.push_back(positional_doc(word));
  }
  for (const train::CommandFlag& flag : command.flags) {
    doc.arguments.push_back(
        {.name = std::string(flag.name),
         .short_name = flag.name == "--help" ? "-h" : "",
         .value = std::string(flag.value),
         .help = std::string(flag.help)});
  }
  if (command.name == "train") {
    std::ranges::move(train_arguments(), std::back_inserter(doc.arguments));
  }
  return doc;
}

bool is_one_of(std::span<const char* const> names, const std::string& value) {
  const std::vector<std::string> parts = words_or_none(value);
  return std::ranges::any_of(parts, [&names](const std::string& part) {
    return std::ranges::find(names, part) != names.end();
  });
}

} // namespace

bool ArgumentDoc::takes_file() const {
  return is_one_of(kFileNames, value);
}

bool ArgumentDoc::takes_folder() const {
  return is_one_of(kFolderNames, value);
}

std::string CommandDoc::group() const {
  return name.substr(
      0,
      name.find(' ') == std::string::npos ? 0 : name.find(' '));
}

std::string CommandDoc::last_name() const {
  return name.substr(name.find(' ') + 1);
}

CommandDoc doc_of(const Command& command) {
  CommandDoc doc{.name = full_name(command), .help = std::string(command.help)};
  Common common;
  CLI::App app;
  app.option_defaults()->always_capture_default();
  const Runner runner = command.setup(app, common);
  add_common_flags(command, app, common);
  for (const CLI::Option* option : app.get_options()) {
    doc.arguments.push_back(doc_of(*option));
  }
  if (app.get_prefix_command()) {
    doc.arguments.push_back(
        {.name = "PROGRAM",
         .value = "PROGRAM",
         .help = "what each rank runs; a *.py file is run by Python",
         .is_positional = true,
         .is_required = true});
    doc.arguments.push_back(
        {.name = "ARG",
         .value = "ARG",
         .help = "of the program",
         .is_positional = true,
         .is_list = true});
  }
  std::ranges::stable_sort(doc.arguments, {}, [](const ArgumentDoc& argument) {
    return argument.is_positional ? 0 : argument.is_hidden ? 2 : 1;
  });
  for (const std::string_view example : command.examples) {
    doc.examples.emplace_back(example);
  }
  return doc;
}

std::vector<CommandDoc> command_docs() {
  std::vector<CommandDoc> docs;
  docs.reserve(train::kTrainCommands.size() + commands().size());
  for (const train::TrainCommand& command : train::kTrainCommands) {
    docs.push_back(doc_of(command));
  }
  for (const Command& command : commands()) {
    docs.push_back(doc_of(command));
  }
  return docs;
}

std::string either(std::span<const std::string> words) {
  if (words.size() < 2) {
    return join(words, "");
  }
  return format(
      "{} or {}",
      join(words.first(words.size() - 1), ", "),
      words.back());
}

std::string positional_text(const CommandDoc& command) {
  std::vector<std::string> parts;
  for (const ArgumentDoc& argument : command.arguments) {
    if (argument.is_positional) {
      const std::string name = argument.name + (argument.is_list ? "..." : "");
      parts.push_back(argument.is_required ? name : "[" + name + "]");
    }
  }
  return join(parts, " ");
}

} // namespace lockstep::cli
