// SPDX-License-Identifier: BSD-3-Clause
//
// `metrics.jsonl`: the numbers of `results.csv` and `steps.csv` as one JSON
// object per line, for programs that follow a run.
//   {"event":"step","step":51,"epoch":1,"loss":2.3012,...}
//   {"event":"epoch","epoch":1,"step":938,"samples":60000,...}
#pragma once

#include "lockstep/train/observer.h"
#include "lockstep/train/run/run_files.h"

namespace lockstep::train {

class JsonObserver final : public Observer {
 public:
  /// Opens `metrics.jsonl` in `folder`. Ownership: `files` must outlive the
  /// observer. Errors: throws kIo.
  JsonObserver(
      RunFiles& files,
      const std::string& folder,
      std::int64_t log_interval);

  void on_step(const StepRecord& record) override;
  void on_epoch(const EpochRecord& record) override;

 private:
  std::int64_t log_interval_;
  RunFile& file_;
};

} // namespace lockstep::train
