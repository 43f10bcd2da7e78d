// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/csv_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {

CsvObserver::CsvObserver(
    RunFiles& files,
    const std::string& folder,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      results_(
          files.open(format("{}/{}", folder, kResultsFile), kResultsHeader)),
      steps_(files.open(format("{}/{}", folder, kStepsFile), kStepsHeader)) {}

void CsvObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    steps_.append(format(
        "{},{},{},{}",
        record.step,
        record.epoch,
        shortest(record.loss),
        shortest(record.lr)));
  }
}

void CsvObserver::on_epoch(const EpochRecord& record) {
  results_.append(format(
      "{},{},{},{},{},{},{},{},{},{:.1f},{:.3f},{:.3f},{:.3f}",
      record.epoch,
      record.step,
      record.samples,
      shortest(record.train.loss),
      shortest(record.train.top1),
      shortest(record.test.loss),
      shortest(record.test.top1),
      shortest(record.test.top5),
      shortest(record.lr),
      record.images_per_second,
      record.times.wall,
      record.times.user,
      record.times.system));
}

} // namespace lockstep::train
