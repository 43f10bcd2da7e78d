// SPDX-License-Identifier: BSD-3-Clause
//
// The command line: parsing, help, version, and what to say about mistakes.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/color.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/reading_flags.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"

namespace lockstep::cli {
namespace {

constexpr const char* kAbout =
    "Lockstep: data-parallel training and portable checkpoints.\n"
    "Commands with LibTorch (train, bench, doctor, summary) run "
    "lockstep-train.";
constexpr const char* kExamples =
    "Examples:\n"
    "  lockstep ckpt checkpoint.pth.tar\n"
    "  lockstep ckpt show checkpoint.pth.tar state_dict.fc.weight\n"
    "  lockstep train --model resnet18 --data fashion-mnist --devices cpu*2";

std::string version_text() {
  return format(
      "Lockstep {}\n"
      "compiler  {} {}, C++{}\n"
      "program   lockstep: no LibTorch linked; lockstep-train has it\n"
      "reads     PyTorch zip checkpoints; CRC-32 and inflate by libdeflate",
      kVersion,
#ifdef __clang__
      "clang",
#else
      "GCC",
#endif
      __VERSION__,
      __cplusplus / 100 % 100);
}

Error usage_error(std::string message, std::string hint) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "cli.args",
      .message = std::move(message),
      .hint = std::move(hint)};
}

std::string did_you_mean(
    std::string_view word,
    std::span<const std::string> known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "run 'lockstep --help'"
                      : format("did you mean '{}'?", near);
}

bool is_flag(std::string_view arg) {
  return arg.size() > 1 && arg.starts_with('-');
}

const Command* find_command(std::string_view group, std::string_view name) {
  for (const Command& command : commands()) {
    if (command.group == group && command.name == name) {
      return &command;
    }
  }
  return nullptr;
}

std::vector<std::string> ckpt_commands() {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.group == "ckpt") {
      names.emplace_back(command.name);
    }
  }
  return names;
}

// The word that names a command in "ckpt [--json] WORD"; null without one.
const std::string* ckpt_word(const std::vector<std::string>& args) {
  if (args.empty() || args[0] != "ckpt") {
    return nullptr;
  }
  const auto word = std::find_if_not(args.begin() + 1, args.end(), is_flag);
  return word == args.end() ? nullptr : &*word;
}

// "--batch_size" is "--batch-size"; "ckpt FILE" is "ckpt inspect FILE".
std::vector<std::string> normalize(std::span<const std::string> given) {
  std::vector<std::string> args(given.begin(), given.end());
  for (std::string& arg : args) {
    if (arg.starts_with("--")) {
      const auto end = std::ranges::find(arg, '=');
      std::replace(arg.begin(), end, '_', '-');
    }
  }
  const std::string* word = ckpt_word(args);
  if (word != nullptr && find_command("ckpt", *word) == nullptr) {
    args.insert(args.begin() + 1, "inspect");
  }
  return args;
}

// The command that `args` name; null if that is not clear.
const Command* named_command(const std::vector<std::string>& args) {
  const std::string* word = ckpt_word(args);
  if (word != nullptr) {
    return find_command("ckpt", *word);
  }
  return args.empty() ? nullptr : find_command("", args[0]);
}

// A parser for the command that the arguments name, or for all of them: most
// of the program's time would go into flags that nobody asked for.
class Parser {
 public:
  explicit Parser(const std::vector<std::string>& args) {
    app_.require_subcommand(1);
    app_.footer(kExamples);
    app_.set_version_flag("--version", version_text());
    const Command* only = named_command(args);
    for (const Command& command : commands()) {
      if (only == nullptr || only == &command) {
        add(command);
      }
    }
  }

  int run(std::vector<std::string> args) {
    std::ranges::reverse(args); // as CLI11 wants them
    try {
      app_.parse(args);
    } catch (const CLI::Success& done) {
      return app_.exit(done);
    } catch (const CLI::ParseError& error) {
      return print_error(explain(error), "lockstep.args/1", common_.json);
    }
    const Entry* entry = chosen();
    auto status = run(*entry);
    return status ? *status
                  : print_error(
                        status.error(),
                        schema_name(*entry->command),
                        common_.json);
  }

 private:
  struct Entry {
    CLI::App* app = nullptr;
    const Command* command = nullptr;
    Runner run = {};
  };

  Result<int> run(const Entry& entry) {
    LOCKSTEP_ASSIGN(common_.color, wants_color(common_.color_mode));
    apply_reading_flags(common_);
    return entry.run();
  }

  void add(const Command& command) {
    CLI::App* app = group(std::string(command.group))
                        .add_subcommand(
                            std::string(command.name),
                            std::string(command.help));
    entries_.push_back({app, &command, command.setup(*app, common_)});
    add_common_flags(command, *app, common_);
  }

  CLI::App& group(const std::string& name) {
    if (name.empty()) {
      return app_;
    }
    CLI::App*& found = groups_[name];
    if (found == nullptr) {
      found = app_.add_subcommand(name, "look inside checkpoint files");
      found->require_subcommand(1);
      found->footer(kExamples);
    }
    return *found;
  }

  const Entry* chosen() const {
    for (const Entry& entry : entries_) {
      if (entry.app->parsed()) {
        return &entry;
      }
    }
    return nullptr;
  }

  Error explain(const CLI::ParseError& error) const {
    for (const std::string& rest : app_.remaining(true)) {
      if (is_flag(rest)) {
        return usage_error(
            format("unknown flag '{}'", escape(rest)),
            did_you_mean(rest, flags()));
      }
    }
    const auto rest = app_.remaining(true);
    if (!rest.empty()) {
      return usage_error(
          format("unexpected argument '{}'", escape(rest.front())),
          "run 'lockstep --help'");
    }
    return usage_error(escape(error.what(), 200), "run 'lockstep --help'");
  }

  // Long flags of the chosen command.
  std::vector<std::string> flags() const {
    std::vector<std::string> names{"--help", "--version"};
    for (const Entry& entry : entries_) {
      if (!entry.app->parsed() && chosen() != nullptr) {
        continue;
      }
      for (const CLI::Option* option : entry.app->get_options()) {
        for (const std::string& name : option->get_lnames()) {
          names.push_back("--" + name);
        }
      }
    }
    return names;
  }

  Common common_;
  CLI::App app_{kAbout, "lockstep"};
  std::map<std::string, CLI::App*> groups_;
  std::vector<Entry> entries_;
};

// "ckpt lss FILE": no command and no file, but near a command.
std::optional<Error> mistyped_command(const std::vector<std::string>& args) {
  const std::string* word = ckpt_word(args);
  if (word == nullptr || find_command("ckpt", *word) != nullptr ||
      *word == "-" || real_fs().stat(*word)) {
    return std::nullopt;
  }
  const std::string near = nearest(*word, ckpt_commands());
  if (near.empty()) {
    return std::nullopt;
  }
  return usage_error(
      format("unknown command 'ckpt {}'", escape(*word)),
      format("did you mean 'ckpt {}'?", near));
}

std::optional<Error> unknown_command(const std::vector<std::string>& args) {
  std::vector<std::string> names{"ckpt", "train", "bench", "doctor", "summary"};
  for (const Command& command : commands()) {
    if (command.group.empty()) {
      names.emplace_back(command.name);
    }
  }
  const bool is_known = args.empty() || is_flag(args[0]) ||
                        std::ranges::find(names, args[0]) != names.end();
  if (is_known) {
    return std::nullopt;
  }
  return usage_error(
      format("unknown command '{}'", escape(args[0])),
      did_you_mean(args[0], names));
}

} // namespace

int run(std::span<const std::string> given) {
  if (const auto error = mistyped_command({given.begin(), given.end()})) {
    return print_error(
        *error,
        "lockstep.args/1",
        std::ranges::find(given, "--json") != given.end());
  }
  if (given.size() == 1 && given[0] == "--version") {
    print(version_text() + "\n"); // no parser: it would declare every flag
    return 0;
  }
  std::vector<std::string> args = normalize(given);
  const bool wants_json = std::ranges::find(args, "--json") != args.end();
  if (const auto error = unknown_command(args)) {
    return print_error(*error, "lockstep.args/1", wants_json);
  }
  Parser parser(args);
  return parser.run(std::move(args));
}

} // namespace lockstep::cli
