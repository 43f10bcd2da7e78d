// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/run_outputs.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/csv_observer.h"
#include "lockstep/train/json_observer.h"
#include "lockstep/train/line_observer.h"
#include "lockstep/train/run_log.h"

namespace lockstep::train {
namespace {

/// Whether both paths lead to one folder.
bool same_folder(FileSystem& fs, const std::string& a, const std::string& b) {
  const auto real_a = fs.resolve(a);
  const auto real_b = fs.resolve(b);
  return real_a && real_b && *real_a == *real_b;
}

} // namespace

RunOutputs::RunOutputs(RunOutputsOptions options)
    : options_(std::move(options)),
      files_(*options_.fs, [this](const Error& error) {
        log(LogLevel::kWarning, to_string(error));
      }) {}

bool RunOutputs::writes() const {
  return options_.world->is_writer();
}

void RunOutputs::take_folder(
    const TrainConfig& config,
    const std::optional<Resumption>& resumption) {
  FileSystem& fs = *options_.fs;
  const std::string home = resumption ? resumption->folder : "";
  const bool goes_on =
      !home.empty() && resumption->is_in_place &&
      (config.output.empty() || same_folder(fs, config.output, home));
  if (goes_on) {
    folder_ = continue_run_folder(fs, home, config);
    has_checkpoint_ = !resumption->path.empty();
  } else {
    folder_ = create_run_folder(fs, config, config.output.empty() ? home : "");
  }
  if (!goes_on || !has_checkpoint_) {
    files_.start_anew();
  }
}

void RunOutputs::open(
    const TrainConfig& config,
    const std::optional<Resumption>& resumption) {
  if (!writes()) {
    return;
  }
  take_folder(config, resumption);
  log_file_ = std::make_unique<RunLog>(files_, folder_->file("log.txt"));
  observers_ = {
      std::make_shared<LineObserver>(*log_file_, config.log_interval),
      std::make_shared<CsvObserver>(files_, folder_->path, config.log_interval),
      std::make_shared<JsonObserver>(
          files_,
          folder_->path,
          config.log_interval)};
  observers_.insert(
      observers_.end(),
      options_.observers.begin(),
      options_.observers.end());
  writer_ = std::make_unique<CheckpointWriter>(
      *options_.fs,
      folder_->path,
      CheckpointWriterOptions{.keep = config.keep, .before = [this] {
                                return files_.sync();
                              }});
  if (!folder_->taken.empty()) {
    log(LogLevel::kInfo,
        format(
            "{} holds another run, this one is in {}",
            folder_->taken,
            folder_->path));
  }
  if (!folder_->lock.stale_owner().empty()) {
    log(LogLevel::kWarning,
        format(
            "the run folder was left by a process that died ({})",
            folder_->lock.stale_owner()));
  }
}

const std::string& RunOutputs::folder() const {
  static const std::string none;
  return folder_ ? folder_->path : none;
}

void RunOutputs::log(LogLevel level, std::string_view message) {
  if (!writes()) {
    return;
  }
  if (log_file_ != nullptr) {
    log_file_->write(level, message);
  }
  if (options_.log != nullptr) {
    options_.log->write(level, message);
  }
}

void RunOutputs::start(const StartRecord& record) {
  for (const auto& observer : observers_) {
    observer->on_start(record);
  }
}

void RunOutputs::step(const StepRecord& record) {
  for (const auto& observer : observers_) {
    observer->on_step(record);
  }
  if (writer_ != nullptr) {
    take(writer_->finished());
  }
}

void RunOutputs::epoch(const EpochRecord& record) {
  for (const auto& observer : observers_) {
    observer->on_epoch(record);
  }
}

void RunOutputs::save(const ckpt::Value& live, const CheckpointRecord& record) {
  if (writer_ != nullptr) {
    writer_->write(live, record);
  }
}

void RunOutputs::take(std::vector<CheckpointOutcome> outcomes) {
  for (CheckpointOutcome& outcome : outcomes) {
    if (!outcome.status) {
      last_failure_ = std::move(outcome.status).error();
      log(LogLevel::kWarning,
          "checkpoint not saved, the one before is kept: " +
              to_string(*last_failure_));
      continue;
    }
    last_failure_.reset();
    has_checkpoint_ = true;
    if (!outcome.pruned) {
      log(LogLevel::kWarning,
          "an old checkpoint could not be removed: " +
              to_string(outcome.pruned.error()));
    }
    for (const auto& observer : observers_) {
      observer->on_checkpoint(outcome.record);
    }
  }
}

void RunOutputs::finish() {
  if (writer_ != nullptr) {
    take(writer_->wait());
    if (last_failure_) {
      raise(*last_failure_);
    }
    files_.sync().value();
  }
}

void RunOutputs::end(const EndRecord& record) {
  for (const auto& observer : observers_) {
    observer->on_end(record);
  }
  if (writer_ != nullptr) {
    files_.sync().value();
  }
}

} // namespace lockstep::train
