// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that a run leaves behind: its folder, observers and checkpoints.
// The only place that asks whether this rank writes; on the others only the
// program's observers are told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Whether a run goes on in the folder of `from`; else a new one is made.
bool goes_on_in_place(
    FileSystem& fs,
    const TrainConfig& config,
    const std::optional<ResumePoint>& from);

struct RunOutputsOptions {
  FileSystem* fs = &real_fs();
  dist::ProcessGroup group = {};
  /// Receives messages besides `log.txt`; none: silence.
  LogSink* log = nullptr;
  /// Columns of results.csv (record_row.h).
  std::string results_header = {};
  /// Told after the run's own files, on every rank.
  Observers observers = {};
  /// Of the settings, for env.json.
  SettingSources sources = {};
};

/// Threads: one at a time.
class RunOutputs {
 public:
  /// Ownership: what the options point to must outlive it.
  explicit RunOutputs(RunOutputsOptions options);

  /// The rows of the run's files, as a part of its state: load before `open`.
  StatePart part() {
    return files_.part();
  }

  /// Takes the folder where a run goes on `from`, or a new one, and opens log,
  /// tables and checkpoints in it.
  /// Errors: throws kIo, also if another process trains there, kMismatch if one
  /// did since `from` was found; on other ranks kUnavailable then.
  void open(const TrainConfig& config, const std::optional<ResumePoint>& from);

  /// The run folder; empty before `open` and on ranks that do not write.
  [[nodiscard]] const std::string& folder() const;
  /// True once the folder holds a checkpoint to go on from.
  [[nodiscard]] bool has_checkpoint() const {
    return has_checkpoint_;
  }

  /// Waits for what is being written. The newest checkpoint; empty if there is
  /// none, and on ranks that do not write.
  [[nodiscard]] std::string settled_checkpoint();

  void log(LogLevel level, std::string_view message);
  void start(const StartRecord& record);
  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);
  /// Writes `live` in the background. A checkpoint that failed is a warning, at
  /// the next call of any kind.
  void save(const ckpt::Value& live, const CheckpointRecord& record);
  /// Waits until everything is on the disk. Errors: throws what kept the last
  /// checkpoint, or a row, from getting there.
  void finish();
  void end(const EndRecord& record);
  /// Instead of `end`. Throws nothing: there is an error already.
  void fail(const Error& error) noexcept;
  /// Whether it is this rank that does.
  [[nodiscard]] bool writes() const;

 private:
  void open_files(
      const TrainConfig& config,
      const std::optional<ResumePoint>& from);
  void take_folder(
      const TrainConfig& config,
      const std::optional<ResumePoint>& from);
  void take(std::vector<CheckpointOutcome> outcomes);

  RunOutputsOptions options_;
  /// Freed last: the files below lie in it.
  std::unique_ptr<RunFolder> folder_;
  RunFiles files_;
  std::unique_ptr<LogSink> log_file_;
  Observers observers_;
  /// Why the newest checkpoint was not saved, if it was not.
  std::optional<Error> last_failure_;
  bool has_checkpoint_ = false;
  /// After `files_`, which it uses.
  std::unique_ptr<CheckpointWriter> writer_;
};

} // namespace lockstep::train
