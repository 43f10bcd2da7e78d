// SPDX-License-Identifier: BSD-3-Clause
//
// `events.out.tfevents...`: losses, accuracies and rates for TensorBoard.
//   tensorboard --logdir runs
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/report/event_file.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {

/// Makes a new file at every start, which voids what older ones hold of the
/// steps that come again.
class EventObserver final : public Observer {
 public:
  /// Numbers and their tags.
  using Points = std::vector<std::pair<std::string, double>>;

  /// Ownership: `fs` and `files` must outlive the observer.
  EventObserver(
      FileSystem& fs,
      RunFiles& files,
      std::string folder,
      std::int64_t log_interval);

  /// A disk that fails here means a run without events, and a warning.
  void on_start(const StartRecord& record) override;
  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

 private:
  void add(std::int64_t step, const Points& points);

  FileSystem& fs_;
  RunFiles& files_;
  std::string folder_;
  std::int64_t log_interval_;
  /// Shared with `files_`, which makes it durable.
  std::shared_ptr<report::EventFile> events_;
};

} // namespace lockstep::train
