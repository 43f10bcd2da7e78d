// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "cli_train/commands.h"
#include "cli_train/flags.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/world.h"
#include "lockstep/report/console_log.h"
#include "lockstep/train/bar_observer.h"
#include "lockstep/train/config_file.h"
#include "lockstep/train/interrupt.h"
#include "lockstep/train/line_observer.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run_folder.h"
#include "lockstep/train/trainer.h"

namespace lockstep::cli_train {
namespace {

/// What the command line asks for, all files read.
struct Request {
  train::TrainConfig config = {};
  std::optional<train::Resumption> resumption = {};
};

/// The settings of the run that goes on: in its checkpoint, or, before the
/// first one, in its folder.
void apply_earlier(
    train::TrainConfig& config,
    const train::Resumption& resumption,
    FileSystem& fs) {
  if (const auto* args = resumption.checkpoint.root.find("args")) {
    train::apply_args(config, *args);
  } else if (resumption.path.empty()) {
    const std::string path =
        format("{}/{}", resumption.folder, train::kArgsFile);
    train::apply_yaml(config, read_text(fs, path).value(), path);
  }
}

/// Defaults, then the resumed run's settings, then `--config`, then flags.
Request resolve(const CommandLine& line) {
  FileSystem& fs = real_fs();
  Request request;
  train::TrainConfig typed;
  apply(line, typed);
  request.resumption = train::find_resumption(fs, typed);
  if (request.resumption) {
    apply_earlier(request.config, *request.resumption, fs);
  }
  if (!line.config_file.empty()) {
    train::apply_yaml(
        request.config,
        read_text(fs, line.config_file).value(),
        line.config_file);
  }
  apply(line, request.config);
  return request;
}

/// One process is all that can train yet.
void check_world() {
  const RankInfo info = rank_info_from_environment().value();
  if (info.size > 1) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "train",
         .message = format(
             "started as rank {} of {}, but training over several processes "
             "is not there yet",
             info.rank,
             info.size),
         .hint = "--devices names several devices for one process"});
  }
}

/// Shows steps as `--progress` says; silent with `--quiet`.
train::Observers make_observers(
    const train::TrainConfig& config,
    report::Console& console,
    LogSink& log) {
  if (config.quiet || config.progress == "off") {
    return {};
  }
  const bool bar = config.progress == "bar" ||
                   (config.progress == "auto" && console.traits().animated);
  if (bar) {
    return {std::make_shared<train::BarObserver>(console)};
  }
  return {std::make_shared<train::LineObserver>(log, config.log_interval)};
}

void print_result(
    const train::TrainConfig& config,
    const train::TrainResult& result) {
  const std::string text = config.test_only
                               ? format(
                                     "Acc@1 {:.3f} Acc@5 {:.3f} loss {:.4f}\n",
                                     result.test.top1,
                                     result.test.top5,
                                     result.test.loss)
                               : format(
                                     "{} epochs, best Acc@1 {:.3f}, {}\n",
                                     result.epochs,
                                     result.best_acc1,
                                     result.folder);
  std::fputs(text.c_str(), stdout);
}

/// `text` as one word of a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@";
  if (text.find_first_not_of(kPlain) == std::string::npos &&
      !text.starts_with('-')) {
    return text;
  }
  std::string word = "'";
  for (const char letter : text.starts_with('-') ? "./" + text : text) {
    word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return word + "'";
}

/// The status after Ctrl-C or SIGTERM: 75 if the run can go on, else the
/// shell's number for the signal.
int stopped_status(int signal, const train::TrainResult& result, LogSink& log) {
  if (!result.has_checkpoint) {
    log.write(LogLevel::kWarning, "stopped without a checkpoint");
    return 128 + signal;
  }
  log.write(
      LogLevel::kWarning,
      format(
          "stopped; saved step {} of epoch {}. Hint: lockstep train --resume "
          "{}",
          result.steps,
          result.epochs,
          shell_word(result.folder)));
  return error_info(ErrorCode::kInterrupted).exit_code;
}

} // namespace

int train_command(Arguments args) {
  const CommandLine line = parse_command_line(args);
  if (line.wants_help) {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  // A reader that ends first (tee, at Ctrl-C) and a file that may not grow are
  // errors of a write, and no reason to lose the run.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  check_world();
  Request request = resolve(line);
  const train::TrainConfig& config = request.config;
  if (line.wants_dump) {
    std::fputs(train::to_yaml(config).c_str(), stdout);
    return 0;
  }
  report::Console console(STDERR_FILENO);
  const auto log =
      report::ConsoleLog::open(
          console,
          {.console_level = config.quiet ? LogLevel::kError : LogLevel::kInfo})
          .value();
  const train::InterruptGuard interrupt;
  train::Trainer trainer(
      config,
      {.log = log.get(),
       .observers = make_observers(config, console, *log),
       .should_stop = [&] { return interrupt.signal() != 0; },
       .resumption = std::move(request.resumption)});
  const train::TrainResult result = trainer.run();
  if (result.was_stopped && result.epochs < config.epochs) {
    return stopped_status(interrupt.signal(), result, *log);
  }
  print_result(config, result);
  return 0;
}

} // namespace lockstep::cli_train
