// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/flags.h"

#include <algorithm>

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

  std::string word = {};

 private:
  std::span<const std::string> args_;
  std::size_t position_ = 0;
  bool has_value_ = false;
  std::string value_ = {};
};

// --resume "$RUN" with a variable that is not set must not begin another run.
void refuse_empty_file(const train::Flag& flag, const std::string& value) {
  const bool names_file =
      flag.name == "resume" || flag.name == "initial-checkpoint";
  if (names_file && value.empty()) {
    usage_error(
        format("--{} has an empty value; expected {}", flag.name, flag.value));
  }
}

// Of a repeated flag the last one counts, so that a script's defaults can be
// followed by what was typed.
void add(CommandLine& line, const train::Flag& flag, std::string value) {
  refuse_empty_file(flag, value);
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
  line.folder = word;
  add(line, *train::find_flag("--data-dir"), word);
}

[[noreturn]] void unknown_flag(const std::string& word) {
  std::string spelling = word;
  std::ranges::replace(spelling, '_', '-');
  auto known = train::flag_spellings();
  known.insert(
      known.end(),
      {"--config",
       "--recipe",
       "--dump-config",
       "--dry-run",
       "--explain",
       "--help"});
  const std::string near = nearest(spelling, known);
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
  std::string text = word;
  std::ranges::replace(text, '_', '-');
  if (!text.starts_with(kNo)) {
    return nullptr;
  }
  const train::Flag* flag = train::find_flag("--" + text.substr(kNo.size()));
  return flag != nullptr && flag->is_switch() ? flag : nullptr;
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

CommandLine parse_command_line(std::span<const std::string> args) {
  CommandLine line;
  ArgumentReader arguments(args);
  while (arguments.next()) {
    const std::string& word = arguments.word;
    if (word == "--help" || word == "-h") {
      line.wants_help = true;
    } else if (word == "--dump-config" || word == "--dump_config") {
      line.wants_dump = true;
    } else if (
        word == "--dry-run" || word == "--dry_run" || word == "--explain") {
      line.wants_dry_run = true;
    } else if (word == "--config" || word == "-c") {
      line.config_file = arguments.value();
    } else if (word == "--recipe") {
      line.recipe = arguments.value();
    } else if (!word.starts_with('-')) {
      add_folder(line, word);
    } else if (const train::Flag* flag = train::find_flag(word)) {
      add(line,
          *flag,
          flag->is_switch() ? arguments.switch_value() : arguments.value());
    } else if (const train::Flag* negated = negated_switch(word)) {
      add(line, *negated, "false");
    } else {
      unknown_flag(word);
    }
  }
  return line;
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
