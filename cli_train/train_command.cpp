// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "cli_train/commands.h"
#include "cli_train/flags.h"
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/console_log.h"
#include "lockstep/train/bar_sink.h"
#include "lockstep/train/config_file.h"
#include "lockstep/train/interrupt.h"
#include "lockstep/train/line_sink.h"
#include "lockstep/train/trainer.h"

namespace lockstep::cli_train {
namespace {

/// Defaults, then the resumed checkpoint's `args`, then `--config`, then flags.
train::TrainConfig resolve(const CommandLine& line) {
  FileSystem& fs = real_fs();
  train::TrainConfig typed;
  apply(line, typed);
  train::TrainConfig config;
  if (!typed.resume.empty()) {
    if (const auto path = train::find_checkpoint(fs, typed)) {
      const auto checkpoint = train::open_checkpoint(fs, *path);
      if (const ckpt::Value* args = checkpoint.root.find("args")) {
        train::apply_args(config, *args);
      }
    }
  }
  if (!line.config_file.empty()) {
    train::apply_yaml(
        config,
        read_text(fs, line.config_file).value(),
        line.config_file);
  }
  apply(line, config);
  return config;
}

/// Shows steps as `--progress` says; silent with `--quiet`.
std::vector<std::shared_ptr<train::Sink>> make_sinks(
    const train::TrainConfig& config,
    report::Console& console,
    LogSink& log) {
  if (config.quiet || config.progress == "off") {
    return {};
  }
  const bool bar = config.progress == "bar" ||
                   (config.progress == "auto" && console.traits().animated);
  if (bar) {
    return {std::make_shared<train::BarSink>(console)};
  }
  return {std::make_shared<train::LineSink>(log, config.log_interval)};
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

/// The status after Ctrl-C or SIGTERM: 75 if the run can go on, else the
/// shell's number for the signal.
int stopped_status(int signal, const train::TrainResult& result, LogSink& log) {
  if (!result.has_checkpoint) {
    log.write(LogLevel::kWarning, "stopped before the first checkpoint");
    return 128 + signal;
  }
  log.write(
      LogLevel::kWarning,
      format(
          "stopped; {} holds {} finished epochs. Hint: lockstep train "
          "--resume {}",
          train::kCheckpointFile,
          result.epochs,
          result.folder));
  return error_info(ErrorCode::kInterrupted).exit_code;
}

} // namespace

int train_command(Arguments args) {
  const CommandLine line = parse_command_line(args);
  if (line.wants_help) {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  const train::TrainConfig config = resolve(line);
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
       .sinks = make_sinks(config, console, *log),
       .should_stop = [&] { return interrupt.signal() != 0; }});
  const train::TrainResult result = trainer.run();
  if (result.was_stopped && result.epochs < config.epochs) {
    return stopped_status(interrupt.signal(), result, *log);
  }
  print_result(config, result);
  return 0;
}

} // namespace lockstep::cli_train
