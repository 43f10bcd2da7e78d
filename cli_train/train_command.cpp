// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli_train/commands.h"
#include "cli_train/flags.h"
#include "cli_train/request.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/internal/program_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/launch/internal/job_note.h"
#include "lockstep/report/console_log.h"
#include "lockstep/train/checkpoints/augment_file.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/loop/interrupt.h"
#include "lockstep/train/observers/bar_observer.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/trainer.h"

namespace lockstep::cli_train {
namespace {

/// The ranks that a launcher has started; or, if `--strategy distributed` asks
/// for it, this process alone as one. Waits for the others.
dist::ProcessGroup join_ranks(const train::TrainConfig& config) {
  const bool is_asked =
      config.strategy == "distributed" || config.strategy == "ddp";
  return is_asked && !dist::is_initialized() ? dist::init_process_group()
                                             : dist::job_group();
}

/// Of an earlier attempt of this job, which its launcher has started again: the
/// folder that rank 0 trained in; "" if there is none.
std::string begun_folder(const dist::ProcessGroup& group) {
  const std::string note =
      launch::is_restarted() ? launch::read_job_note() : "";
  const auto notes = group.all_gather_bytes(as_byte_span(note));
  return std::string(as_text(notes.front()));
}

/// Keeps the run's folder for the next attempt of the job.
class FolderNote final : public train::Observer {
  void on_start(const train::StartRecord& record) override {
    std::error_code code;
    launch::write_job_note(std::filesystem::absolute(record.folder, code));
  }
  [[nodiscard]] bool only_looks() const override {
    return true;
  }
};

/// What the console shows of a rank: of one that does not write, only what ends
/// it.
LogLevel console_level(const train::TrainConfig& config, int rank) {
  return config.quiet || rank != 0 ? LogLevel::kError : LogLevel::kInfo;
}

/// Shows steps as `--progress` says; nothing with `--quiet`. Of ranks that do
/// not write, nothing is shown or kept.
train::Observers make_observers(
    const train::TrainConfig& config,
    int rank,
    report::Console& console,
    LogSink& log) {
  if (rank != 0) {
    return {};
  }
  train::Observers observers{std::make_shared<FolderNote>()};
  if (config.quiet || config.progress == "off") {
    return observers;
  }
  if (config.progress == "bar" ||
      (config.progress == "auto" && console.traits().animated)) {
    observers.push_back(std::make_shared<train::BarObserver>(console));
  } else {
    observers.push_back(
        std::make_shared<train::LineObserver>(log, config.log_interval));
  }
  return observers;
}

std::string best_text(const train::TrainResult& result) {
  return result.best && train::is_accuracy(result.best_by)
             ? format("best Acc@1 {:.3f}", *result.best)
             : train::best_text(result.best_by, result.best);
}

void print_result(
    const train::TrainConfig& config,
    const train::TrainResult& result) {
  // Lockstep's data have a test.
  const train::Score test = result.test.value_or(train::Score());
  const std::string text = config.test_only
                               ? format(
                                     "{} loss {:.4f}\n",
                                     train::metrics_text(test.metrics),
                                     test.loss)
                               : format(
                                     "{} {}, {}, {}\n",
                                     result.epochs,
                                     result.epochs == 1 ? "epoch" : "epochs",
                                     best_text(result),
                                     result.folder);
  print(text);
}

// What else than the settings decides one; empty: it was written otherwise.
std::string_view source_of(const train::Flag& flag, bool is_new) {
  return flag.name == "img-size"                        ? "the model"
         : !is_new                                      ? "the checkpoint"
         : flag.name == "task" || flag.name == "metric" ? "the data"
                                                        : "";
}

/// What would run, and why.
void print_plan(const train::Trainer& trainer, Request& request) {
  for (const train::Flag& flag : train::flag_table()) {
    const bool is_of_a_file =
        flag.name == "class-weights" ||
        (flag.name == "param-groups" && request.config.resume.empty());
    const std::string_view source =
        source_of(flag, request.config.resume.empty());
    // What the trainer took from elsewhere.
    if (!is_of_a_file && !source.empty() &&
        train::get_flag(trainer.config(), flag) !=
            train::get_flag(request.config, flag)) {
      request.sources.set(flag, std::string(source));
    }
  }
  std::string text = request.recipe.empty()
                         ? std::string()
                         : format("the recipe:\n{}\n", request.recipe);
  for (const train::StartLine& line : trainer.plan()) {
    text += line.text + "\n";
  }
  text += "settings, and where they come from:\n" +
          train::settings_table(trainer.config(), request.sources);
  print(text);
}

/// `path` as one word of a shell, and no flag.
std::string path_word(const std::string& path) {
  return shell_word(path.starts_with('-') ? "./" + path : path);
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
          "stopped in epoch {}; saved step {}. Hint: lockstep train --resume "
          "{}",
          result.epochs + 1,
          result.steps,
          path_word(result.folder)));
  return error_info(ErrorCode::kInterrupted).exit_code;
}

// Names of all environment variables.
std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-bounds-pointer-arithmetic)
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

// What the settings name, and what is to be said of it.
train::OwnParts parts_of(
    Request& request,
    const std::string& default_data,
    const dist::ProcessGroup& group) {
  train::OwnParts own = train::named_parts(request.config, /*given=*/{}, group);
  if (!request.recipe.empty() && request.resumption) {
    own.data_warnings.emplace_back(
        "--recipe: the run goes on with its own settings");
  }
  for (std::string& text : idle_variables(variable_names())) {
    own.data_warnings.push_back(std::move(text));
  }
  if (!default_data.empty()) {
    own.data_notes.insert(own.data_notes.begin(), default_data);
  }
  if (own.train_data != nullptr) {
    std::string text = fit_to_samples(request, own.train_data->size());
    if (!text.empty()) {
      own.data_notes.push_back(std::move(text));
    }
  }
  return own;
}

} // namespace

int train_command(Arguments args) {
  const CommandLine line = parse_command_line(args);
  if (line.wants_help) {
    print(help_text());
    return 0;
  }
  // A reader that ends first (tee, at Ctrl-C) and a file that may not grow are
  // errors of a write, and no reason to lose the run.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  dist::ProcessGroup group =
      launch::is_restarted() ? dist::job_group() : dist::ProcessGroup();
  Request request = resolve(line, begun_folder(group));
  request.config.augment =
      train::resolved_augment(request.config.augment, real_fs());
  const train::TrainConfig& config = request.config;
  if (line.wants_dump) {
    print(train::to_yaml(config));
    return 0;
  }
  const std::string default_data = settle_default_data(request);
  // After all have looked for what to resume: then rank 0 may make a folder.
  group.barrier();
  group = join_ranks(config);
  report::Console console(STDERR_FILENO);
  const auto log = report::ConsoleLog::open(
                       console,
                       {.console_level = console_level(config, group.rank())})
                       .value();
  // Not before: who waits for other ranks ends at once.
  const train::InterruptGuard interrupt;
  train::OwnParts own = parts_of(request, default_data, group);
  train::Trainer trainer(
      config,
      {.group = group,
       .log = log.get(),
       .observers = make_observers(config, group.rank(), console, *log),
       .should_stop = [&] { return interrupt.signal() != 0; },
       .own = std::move(own),
       .resumption = std::move(request.resumption),
       .sources = request.sources});
  if (line.wants_dry_run) {
    if (group.rank() == 0) {
      print_plan(trainer, request);
    }
    return 0;
  }
  const train::TrainResult result = trainer.run();
  if (result.was_stopped && result.epochs < config.epochs) {
    return stopped_status(interrupt.signal(), result, *log);
  }
  if (group.rank() == 0) {
    print_result(config, result);
  }
  return 0;
}

} // namespace lockstep::cli_train
