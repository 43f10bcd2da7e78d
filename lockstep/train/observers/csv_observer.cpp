// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/csv_observer.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/metric_row.h"
#include "lockstep/train/run/run_folder.h"

namespace lockstep::train {

CsvObserver::CsvObserver(
    RunFiles& files,
    const std::string& folder,
    std::string results_header,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      header_(std::move(results_header)),
      results_(files.open(format("{}/{}", folder, kResultsFile), header_)),
      steps_(files.open(format("{}/{}", folder, kStepsFile), kStepsHeader)) {}

void CsvObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    steps_.append(row_of(record).cells(kStepsHeader));
  }
}

void CsvObserver::on_epoch(const EpochRecord& record) {
  results_.append(row_of(record).cells(header_));
}

} // namespace lockstep::train
