// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/history_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/metric_row.h"
#include "lockstep/train/run/run_folder.h"

namespace lockstep::train {

HistoryObserver::HistoryObserver(
    RunFiles& files,
    const std::string& folder,
    std::int64_t log_interval)
    : files_(files),
      path_(format("{}/{}", folder, kMetricsFile)),
      log_interval_(log_interval) {}

void HistoryObserver::on_start(const StartRecord& /*record*/) {
  history_->add_all(files_.read(path_));
}

void HistoryObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    history_->add(row_of(record).to_json("step").dump());
  }
}

void HistoryObserver::on_epoch(const EpochRecord& record) {
  history_->add(row_of(record).to_json("epoch").dump());
}

} // namespace lockstep::train
