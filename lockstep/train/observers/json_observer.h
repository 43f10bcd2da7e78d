// SPDX-License-Identifier: BSD-3-Clause
//
// `metrics.jsonl`: the numbers of `results.csv` and `steps.csv` as one JSON
// object per line, for programs that follow a run.
//   {"event":"step","step":51,"epoch":1,"loss":2.3012,...}
//   {"event":"epoch","epoch":1,"step":938,"samples":60000,...}
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/report/run_history.h"
#include "lockstep/train/checkpoints/run_files.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/records/record_row.h"

namespace lockstep::train {

/// Keeps what the file holds, also of earlier starts, for who draws it.
class JsonObserver final : public Observer {
 public:
  /// Opens `metrics.jsonl` in `folder`. Ownership: `files` must outlive the
  /// observer. Errors: throws kIo.
  JsonObserver(
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
  void add(const RecordRow& row, std::string_view event);

  RunFiles& files_;
  std::string path_;
  std::int64_t log_interval_;
  RunFile& file_;
  std::shared_ptr<report::RunHistory> history_ =
      std::make_shared<report::RunHistory>();
};

} // namespace lockstep::train
