// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/json_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/run_folder.h"

namespace lockstep::train {

JsonObserver::JsonObserver(
    RunFiles& files,
    const std::string& folder,
    std::int64_t log_interval)
    : files_(files),
      path_(format("{}/{}", folder, kMetricsFile)),
      log_interval_(log_interval),
      file_(files.open(path_)) {}

void JsonObserver::on_start(const StartRecord& /*record*/) {
  history_->add_all(files_.read(path_));
}

void JsonObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    add(row_of(record), "step");
  }
}

void JsonObserver::on_epoch(const EpochRecord& record) {
  add(row_of(record), "epoch");
}

void JsonObserver::add(const RecordRow& row, std::string_view event) {
  const std::string line = row.to_json(event).dump();
  file_.append(line);
  history_->add(line);
}

} // namespace lockstep::train
