// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/json_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/metric_row.h"
#include "lockstep/train/run/run_folder.h"

namespace lockstep::train {

JsonObserver::JsonObserver(
    RunFiles& files,
    const std::string& folder,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      file_(files.open(format("{}/{}", folder, kMetricsFile))) {}

void JsonObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    file_.append(row_of(record).to_json("step").dump());
  }
}

void JsonObserver::on_epoch(const EpochRecord& record) {
  file_.append(row_of(record).to_json("epoch").dump());
}

} // namespace lockstep::train
