// SPDX-License-Identifier: BSD-3-Clause
//
// What a run folder says of its run, without LibTorch: settings from env.json
// (or args.yaml, in older folders), results from results.csv, and whether a
// process holds the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"

namespace lockstep::cli {

enum class RunState : std::uint8_t {
  /// A process holds the folder.
  kRunning,
  /// All epochs are done, or it ended itself before.
  kFinished,
  /// Ended on request; it can go on.
  kInterrupted,
  /// Ended by an error.
  kFailed,
  /// Ended before its last epoch, nobody knows how: a run of an older version.
  kStopped,
  /// Its process is gone and had no time to say so.
  kKilled,
  /// Not finished, and this user may not see whether a process holds it.
  kUnknown,
};

/// "running", "finished", "interrupted", "failed", "stopped", "killed",
/// "unknown".
std::string_view state_name(RunState state);

/// What is known; texts are empty and numbers missing where it is not.
struct RunFacts {
  std::string path = {};
  RunState state = RunState::kStopped;
  /// Why it failed, or ended before its last epoch, in a few words: "loss nan";
  /// and the whole error.
  std::string why = {};
  std::string error = {};
  /// Settings by their keys, as `args.yaml` spells them.
  std::map<std::string, std::string> args = {};
  std::string devices = {};
  /// Processes; 0: not known.
  std::int64_t ranks = 0;
  std::string lockstep_version = {};
  std::int64_t epochs_done = 0;
  /// The column of results.csv that chooses the best epoch, "val_miou", and
  /// whether the lowest is best. Runs of older versions do not tell: of them it
  /// is the accuracy, or else the loss, of the test, or else of the training.
  std::string best_column = {};
  bool is_lower_better = false;
  std::optional<double> best = {};
  /// Loss of the last epoch's test.
  std::optional<double> last_loss = {};
  /// Units: seconds, over all epochs.
  std::optional<double> seconds = {};
  /// Units: seconds since something was written.
  std::int64_t age = 0;

  [[nodiscard]] std::string name() const;
  /// The setting, "" if it is not known.
  [[nodiscard]] std::string arg(const std::string& key) const;
  /// 0 if that is not known.
  [[nodiscard]] std::int64_t epochs() const;
};

/// True if the folder holds files of a run.
bool is_run_folder(FileSystem& fs, const std::string& path);

/// The run folders at and below `path`, in the order of names.
/// Errors: those of listing `path` itself.
Result<std::vector<std::string>> find_runs(
    FileSystem& fs,
    const std::string& path);

/// Never fails: a file that is missing or broken leaves its facts out.
RunFacts read_run(FileSystem& fs, const std::string& path);

} // namespace lockstep::cli
