// SPDX-License-Identifier: BSD-3-Clause
//
// What a run has measured so far, for who draws it.
#pragma once

#include <memory>
#include <string>

#include "lockstep/report/run_history.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/run/run_files.h"

namespace lockstep::train {

/// Keeps what `metrics.jsonl` holds, also of earlier starts, without reading it
/// again.
class HistoryObserver final : public Observer {
 public:
  /// Of the file in `folder`, which a `JsonObserver` has opened by the time the
  /// run starts. Ownership: `files` must outlive the observer.
  HistoryObserver(
      RunFiles& files,
      const std::string& folder,
      std::int64_t log_interval);

  void on_start(const StartRecord& record) override;
  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

  /// Told of what this observer has been told of.
  [[nodiscard]] std::shared_ptr<const report::RunHistory> history() const {
    return history_;
  }

 private:
  RunFiles& files_;
  std::string path_;
  std::int64_t log_interval_;
  std::shared_ptr<report::RunHistory> history_ =
      std::make_shared<report::RunHistory>();
};

} // namespace lockstep::train
