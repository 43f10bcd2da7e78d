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

namespace {

// An empty cell is no number.
std::string cell(const std::optional<double>& number) {
  return number ? shortest(*number) : std::string();
}

} // namespace

void CsvObserver::on_epoch(const EpochRecord& record) {
  const Score test = record.test.value_or(Score());
  results_.append(format(
      "{},{},{},{},{},{},{},{},{},{:.1f},{:.3f},{:.3f},{:.3f}",
      record.epoch,
      record.step,
      record.samples,
      shortest(record.train.loss),
      cell(record.train.top1),
      record.test ? shortest(test.loss) : std::string(),
      cell(test.top1),
      cell(test.top5),
      shortest(record.lr),
      record.images_per_second,
      record.times.wall,
      record.times.user,
      record.times.system));
}

} // namespace lockstep::train
