// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/run_outputs.h"

#include <exception>
#include <filesystem>
#include <system_error>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/observers/csv_observer.h"
#include "lockstep/train/observers/curves_observer.h"
#include "lockstep/train/observers/env_observer.h"
#include "lockstep/train/observers/event_observer.h"
#include "lockstep/train/observers/json_observer.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/observers/page_observer.h"
#include "lockstep/train/observers/run_log.h"

namespace lockstep::train {
namespace {

/// Whether both paths lead to one folder.
bool same_folder(FileSystem& fs, const std::string& a, const std::string& b) {
  std::error_code code; // of what is not on the disk
  return fs.resolve(a).value() == fs.resolve(b).value() ||
         std::filesystem::equivalent(a, b, code);
}

/// Leads the links to where the run goes on. They lead elsewhere if it was cut
/// off before the links of its first checkpoint, or if its newest checkpoint
/// cannot be used: then the rows that this one counted are about to go, too.
void lead_links(FileSystem& fs, const ResumePoint& from) {
  const std::string name = base_name(from.path);
  if (!checkpoint_step(name)) {
    return; // what has the name of a link
  }
  const auto path_of = [&](std::string_view link) {
    return format("{}/{}", from.folder, link);
  };
  const auto best = fs.stat(path_of(kBestFile));
  const bool has_no_best = !best && best.error().code == ErrorCode::kNotFound;
  if (has_no_best && from.ends_first_epoch) {
    replace_link(fs, name, path_of(kBestFile)).value();
  }
  if (base_name(fs.resolve(path_of(kLatestFile)).value()) != name) {
    replace_link(fs, name, path_of(kLatestFile)).value();
  }
}

/// Between the choice of the checkpoint and the lock of its folder another
/// process may have trained there.
void check_nobody_came(FileSystem& fs, const ResumePoint& from) {
  const std::string newest = newest_checkpoint(fs, from.folder).value();
  if (newest != from.newest) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "another process trained here meanwhile; its newest checkpoint is "
             "{}",
             base_name(newest)),
         .hint = "resume again",
         .path = from.folder,
         .detail = "E_TRAINED_MEANWHILE"});
  }
}

} // namespace

bool goes_on_in_place(
    FileSystem& fs,
    const TrainConfig& config,
    const std::optional<ResumePoint>& from) {
  if (!from || from->folder.empty() || !from->is_in_place) {
    return false;
  }
  const std::string named = named_folder(config);
  return named.empty() || same_folder(fs, named, from->folder);
}

RunOutputs::RunOutputs(RunOutputsOptions options)
    : options_(std::move(options)),
      files_(*options_.fs, [this](const Error& error) {
        log(LogLevel::kWarning, to_string(error));
      }) {}

bool RunOutputs::writes() const {
  return options_.group.rank() == 0;
}

void RunOutputs::take_folder(
    const TrainConfig& config,
    const std::optional<ResumePoint>& from) {
  FileSystem& fs = *options_.fs;
  if (from && goes_on_in_place(fs, config, from)) {
    folder_ =
        std::make_unique<RunFolder>(continue_run_folder(fs, from->folder));
    check_nobody_came(fs, *from);
    has_checkpoint_ = !from->path.empty();
    if (has_checkpoint_) {
      lead_links(fs, *from);
    }
  } else {
    const bool beside = from && named_folder(config).empty();
    folder_ = std::make_unique<RunFolder>(
        create_run_folder(fs, config, beside ? from->folder : ""));
  }
  if (!has_checkpoint_) {
    files_.start_anew();
  }
}

void RunOutputs::open(
    const TrainConfig& config,
    const std::optional<ResumePoint>& from) {
  std::exception_ptr failure;
  if (writes()) {
    try {
      open_files(config, from);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  // A rank that cannot begin must not leave the others waiting.
  const bool has_failed = options_.group.any(failure != nullptr);
  if (failure) {
    std::rethrow_exception(failure);
  }
  if (has_failed) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "train",
         .message = "the rank that writes could not open the run folder",
         .hint = "see its error",
         .detail = "E_OTHER_RANK"});
  }
  observers_.insert(
      observers_.end(),
      options_.observers.begin(),
      options_.observers.end());
}

void RunOutputs::open_files(
    const TrainConfig& config,
    const std::optional<ResumePoint>& from) {
  take_folder(config, from);
  log_file_ = std::make_unique<RunLog>(files_, folder_->file(kLogFile));
  const auto json = std::make_shared<JsonObserver>(
      files_,
      folder_->path,
      config.log_interval);
  observers_ = {
      std::make_shared<EnvObserver>(
          files_,
          folder_->path,
          config,
          options_.sources),
      std::make_shared<LineObserver>(*log_file_, config.log_interval),
      std::make_shared<CsvObserver>(
          files_,
          folder_->path,
          options_.results_header,
          config.log_interval),
      json,
      std::make_shared<CurvesObserver>(files_, folder_->path, json->history()),
      std::make_shared<PageObserver>(files_, folder_->path, json->history()),
      std::make_shared<EventObserver>(
          *options_.fs,
          files_,
          folder_->path,
          config.log_interval)};
  writer_ = std::make_unique<CheckpointWriter>(
      *options_.fs,
      folder_->path,
      CheckpointWriterOptions{.keep = config.keep, .before = [this] {
                                return files_.sync();
                              }});
  write_args(*options_.fs, *folder_, config);
  if (!folder_->taken.empty()) {
    log(LogLevel::kInfo,
        format(
            "{} holds another run, this one is in {}",
            folder_->taken,
            folder_->path));
  }
  if (const std::string warning = folder_->lock.warning(); !warning.empty()) {
    log(LogLevel::kWarning, "the run folder: " + warning);
  }
}

const std::string& RunOutputs::folder() const {
  static const std::string none;
  return folder_ ? folder_->path : none;
}

std::string RunOutputs::settled_checkpoint() {
  if (writer_ != nullptr) {
    take(writer_->wait());
  }
  return has_checkpoint_ ? folder_->file(kLatestFile) : std::string();
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

void RunOutputs::fail(const Error& error) noexcept {
  try {
    // The console has it from whoever catches it.
    if (log_file_ != nullptr) {
      log_file_->write(LogLevel::kError, to_string(error));
    }
    for (const auto& observer : observers_) {
      observer->on_failure(error);
    }
  } catch (const std::exception&) {
    return; // the first error is the one to tell
  }
}

} // namespace lockstep::train
