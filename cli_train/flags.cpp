// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/flags.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {
namespace {

[[noreturn]] void usage_error(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.flags",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_FLAGS"});
}

/// Walks the arguments; `--flag=value` and `--flag value` are the same.
class ArgumentReader {
 public:
  explicit ArgumentReader(std::span<const std::string> args) : args_(args) {}

  /// Steps to the next argument and splits it; false at the end.
  bool next() {
    if (position_ == args_.size()) {
      return false;
    }
    const std::string& text = args_[position_++];
    const auto equals = text.starts_with("--") ? text.find('=') : text.npos;
    has_value_ = equals != text.npos;
    word = text.substr(0, equals);
    value_ = has_value_ ? text.substr(equals + 1) : "";
    return true;
  }

  /// The value after '=' or the next argument.
  std::string value() {
    if (!has_value_ && position_ == args_.size()) {
      usage_error(format("flag '{}' needs a value", word));
    }
    return has_value_ ? value_ : args_[position_++];
  }

  /// A switch takes a value only after '='.
  std::string switch_value() {
    return has_value_ ? value_ : "true";
  }

  void refuse_value() const {
    if (has_value_) {
      usage_error(format(
          "flag '{}' takes no value, got '{}'",
          escape(word),
          escape(value_)));
    }
  }

  std::string word = {};

 private:
  std::span<const std::string> args_;
  std::size_t position_ = 0;
  bool has_value_ = false;
  std::string value_ = {};
};

/// A flag of the command line that is no setting of a run.
struct GeneralFlag {
  std::string_view name = {};
  std::string_view alias = {};
  std::variant<std::string CommandLine::*, bool CommandLine::*> member = {};
  /// "FILE"; a switch takes none.
  std::string_view value = {};
};

constexpr std::array kGeneralFlags{
    GeneralFlag{"--config", "-c", &CommandLine::config_file, "FILE"},
    GeneralFlag{"--recipe", {}, &CommandLine::recipe, "NAME"},
    GeneralFlag{"--dry-run", "--explain", &CommandLine::wants_dry_run},
    GeneralFlag{"--dump-config", {}, &CommandLine::wants_dump},
    GeneralFlag{"--help", "-h", &CommandLine::wants_help},
};

std::string with_hyphens(std::string text) {
  std::ranges::replace(text, '_', '-');
  return text;
}

// --resume "$RUN" with a variable that is not set must not begin another run.
void refuse_empty(
    const std::string& value,
    std::string_view what,
    std::string_view expected) {
  if (value.empty()) {
    usage_error(format("{} has an empty value; expected {}", what, expected));
  }
}

/// Null for other words.
const GeneralFlag* find_general(const std::string& word) {
  const auto* const found =
      std::ranges::find_if(kGeneralFlags, [&](const GeneralFlag& flag) {
        return word == flag.name || (!flag.alias.empty() && word == flag.alias);
      });
  return found == kGeneralFlags.end() ? nullptr : found;
}

// False for a word that is no general flag.
bool take_general(CommandLine& line, ArgumentReader& arguments) {
  const GeneralFlag* const flag = find_general(with_hyphens(arguments.word));
  if (flag == nullptr) {
    return false;
  }
  if (const auto* text =
          std::get_if<std::string CommandLine::*>(&flag->member)) {
    line.*(*text) = arguments.value();
    refuse_empty(line.*(*text), flag->name, flag->value);
  } else {
    arguments.refuse_value();
    line.*std::get<bool CommandLine::*>(flag->member) = true;
  }
  return true;
}

// Of a repeated flag the last one counts, so that a script's defaults can be
// followed by what was typed.
void add(CommandLine& line, const train::Flag& flag, std::string value) {
  if (!flag.is_switch()) {
    refuse_empty(value, format("--{}", flag.name), flag.value);
  }
  const auto same = [&](const auto& entry) { return entry.first == &flag; };
  const auto earlier = std::ranges::find_if(line.values, same);
  if (earlier == line.values.end()) {
    line.values.emplace_back(&flag, std::move(value));
  } else {
    earlier->second = std::move(value);
  }
}

// A bare word; two of them are a mistake, a flag before or behind is not.
void add_folder(CommandLine& line, const std::string& word) {
  if (!line.folder.empty() && line.folder != word) {
    usage_error(format(
        "one data folder at a time; got '{}' and '{}'",
        escape(line.folder),
        escape(word)));
  }
  refuse_empty(word, "an argument", "the data folder");
  line.folder = word;
  add(line, *train::find_flag("--data-dir"), word);
}

/// The spelling that `word` may stand for; empty if none is near.
std::string nearest_flag(const std::string& word) {
  auto known = train::flag_spellings();
  for (const GeneralFlag& flag : kGeneralFlags) {
    for (const std::string_view spelling : {flag.name, flag.alias}) {
      if (spelling.starts_with("--")) {
        known.emplace_back(spelling);
      }
    }
  }
  return nearest(with_hyphens(word), known);
}

[[noreturn]] void unknown_flag(const std::string& word) {
  const std::string near = nearest_flag(word);
  usage_error(
      format("unknown flag '{}'", escape(word)),
      near.empty() ? "'lockstep train --help' lists all"
                   : format("did you mean '{}'?", near));
}

std::string spellings(const train::Flag& flag) {
  std::string text = format("--{}", flag.name);
  if (!flag.aliases.empty()) {
    text += "," + std::string(flag.aliases);
  }
  return flag.value.empty() ? text : text + " " + std::string(flag.value);
}

/// The switch that `--no-cuda` turns off; null for other words.
const train::Flag* negated_switch(const std::string& word) {
  constexpr std::string_view kNo = "--no-";
  const std::string text = with_hyphens(word);
  if (!text.starts_with(kNo)) {
    return nullptr;
  }
  const train::Flag* flag = train::find_flag("--" + text.substr(kNo.size()));
  return flag != nullptr && flag->is_switch() ? flag : nullptr;
}

/// The variable that stands for a flag; empty for a word that is none.
std::string variable_of(const std::string& spelling) {
  if (const train::Flag* flag = train::find_flag(spelling)) {
    return train::environment_name(*flag);
  }
  const GeneralFlag* const flag = find_general(spelling);
  return flag == nullptr
             ? std::string()
             : train::environment_name({.name = flag->name.substr(2)});
}

bool switch_of(const std::string& variable, const std::string& value) {
  const bool is_on = value == "true" || value == "1";
  if (!is_on && value != "false" && value != "0") {
    usage_error(format(
        "{}: expected true or false, got '{}'",
        variable,
        escape(value)));
  }
  return is_on;
}

// What is typed counts more; an empty variable counts as not set.
void take_variables(CommandLine& line, const train::Environment& environment) {
  for (const GeneralFlag& flag : kGeneralFlags) {
    const std::string name = variable_of(std::string(flag.name));
    const std::string value = environment(name).value_or("");
    if (value.empty()) {
      continue;
    }
    if (const auto* text =
            std::get_if<std::string CommandLine::*>(&flag.member)) {
      if ((line.*(*text)).empty()) {
        line.*(*text) = value;
      }
    } else {
      line.*std::get<bool CommandLine::*>(flag.member) |=
          switch_of(name, value);
    }
  }
}

/// What follows the flag in its help line: the words, the default.
std::string describe(const train::Flag& flag) {
  std::string text(flag.help);
  if (!flag.choices.empty()) {
    text += format(": {}", flag.choices);
  }
  const std::string value = train::get_flag({}, flag);
  if (!value.empty() && !flag.is_switch()) {
    text += format(" [{}]", value);
  }
  return text;
}

/// Breaks `text` at spaces into indented lines of at most 80 columns.
std::string wrapped(std::string_view text) {
  constexpr std::string_view kIndent = "      ";
  constexpr std::size_t kColumns = 80;
  std::string out;
  std::size_t column = kColumns;
  for (const std::string& word : split(text, ' ')) {
    if (column + 1 + word.size() > kColumns) {
      out += out.empty() ? "" : "\n";
      out += kIndent;
      column = kIndent.size();
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

constexpr std::string_view kUsage =
    "Usage: lockstep train [DIR] [flags]\n"
    "Trains a model on one or several devices and keeps a run folder that\n"
    "Python reads. Underscores in flags work like hyphens; --no-SWITCH\n"
    "turns a switch off. A variable LOCKSTEP_<FLAG>, such as\n"
    "LOCKSTEP_BATCH_SIZE, stands for a flag that is not given.\n";

constexpr std::string_view kGeneral =
    "\nGeneral\n"
    "  -c,--config FILE\n"
    "      settings from a file (args.yaml of a run); flags win over it\n"
    "  --recipe NAME\n"
    "      settings that come with Lockstep, in place of the defaults:\n"
    "      fashion-mnist|finetune|from-scratch; --dry-run prints them\n"
    "  --dry-run,--explain\n"
    "      print what would run, and every setting with where it comes from\n"
    "  --dump-config\n"
    "      print the settings as such a file and stop\n"
    "  -h,--help\n"
    "      this text\n"
    "\nExamples\n"
    "  lockstep train --model resnet18 --epochs 5 --lr 0.05\n"
    "  lockstep train --devices 'cpu*2' --output runs/two --epochs 1\n"
    "  lockstep train --resume runs/two --epochs 3\n";

} // namespace

CommandLine parse_command_line(
    std::span<const std::string> args,
    const train::Environment& environment) {
  CommandLine line;
  ArgumentReader arguments(args);
  while (arguments.next()) {
    const std::string& word = arguments.word;
    if (!word.starts_with('-')) {
      add_folder(line, word);
    } else if (take_general(line, arguments)) {
      continue;
    } else if (const train::Flag* flag = train::find_flag(word)) {
      add(line,
          *flag,
          flag->is_switch() ? arguments.switch_value() : arguments.value());
    } else if (const train::Flag* negated = negated_switch(word)) {
      arguments.refuse_value();
      add(line, *negated, "false");
    } else {
      unknown_flag(word);
    }
  }
  take_variables(line, environment);
  return line;
}

std::vector<std::string> idle_variables(std::span<const std::string> names) {
  constexpr std::string_view kStart = "LOCKSTEP_";
  std::vector<std::string> said;
  for (const std::string& name : names) {
    if (!name.starts_with(kStart)) {
      continue;
    }
    const std::string spelling =
        with_hyphens("--" + lower_case(name.substr(kStart.size())));
    std::string meant = variable_of(spelling);
    meant = meant.empty() ? variable_of(nearest_flag(spelling)) : meant;
    if (!meant.empty() && meant != name) {
      said.push_back(
          format("{} has no effect: did you mean {}?", escape(name), meant));
    }
  }
  return said;
}

void apply(
    const CommandLine& line,
    train::TrainConfig& config,
    train::SettingSources& sources) {
  for (const auto& [flag, value] : line.values) {
    train::set_flag(config, *flag, value);
    sources.set(*flag, "the command line");
  }
}

std::string help_text() {
  std::string text(kUsage);
  const train::Flag* previous = nullptr;
  for (const train::Flag& flag : train::flag_table()) {
    if (previous == nullptr || previous->group != flag.group) {
      text += format("\n{}\n", train::group_title(flag.group));
    }
    text += format("  {}\n{}\n", spellings(flag), wrapped(describe(flag)));
    previous = &flag;
  }
  return text + std::string(kGeneral);
}

} // namespace lockstep::cli_train
