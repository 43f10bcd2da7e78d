// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/csv_observer.h"

#include <algorithm>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/records/record_row.h"

namespace lockstep::train {
namespace {

/// The columns of a file that may be there, and behind them those that it
/// lacks, which its rows get as empty cells: a run that goes on may measure
/// more, or less.
std::string
widened(RunFiles& files, const std::string& path, const std::string& header) {
  const std::vector<std::string> lines = split(files.read(path), '\n');
  const std::string& old = lines.front();
  if (old.empty() || old == header) {
    return header;
  }
  const std::vector<std::string> known = split(old, ',');
  std::string more;
  std::string cells;
  for (const std::string& column : split(header, ',')) {
    if (std::ranges::find(known, column) == known.end()) {
      more += "," + column;
      cells += ",";
    }
  }
  if (!more.empty()) {
    std::string text = old + more + "\n";
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
      text += lines[i] + cells + "\n";
    }
    files.replace(path, text);
  }
  return old + more;
}

} // namespace

CsvObserver::CsvObserver(
    RunFiles& files,
    const std::string& folder,
    const std::string& results_header,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      header_(widened(
          files,
          format("{}/{}", folder, kResultsFile),
          results_header)),
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
