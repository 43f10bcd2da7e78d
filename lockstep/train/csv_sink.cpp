// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/csv_sink.h"

#include <charconv>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

/// True for a complete row of an epoch before `start_epoch`.
bool is_kept(
    const std::string& row,
    std::size_t columns,
    std::size_t epoch_column,
    std::int64_t start_epoch) {
  const auto cells = split(row, ',');
  if (cells.size() != columns) {
    return false;
  }
  const std::string& cell = cells[epoch_column];
  std::int64_t epoch = 0;
  const auto status =
      std::from_chars(cell.data(), cell.data() + cell.size(), epoch).ec;
  return status == std::errc() && epoch < start_epoch;
}

std::unique_ptr<WritableFile> open_csv(
    FileSystem& fs,
    const std::string& path,
    std::string_view header,
    std::size_t epoch_column,
    std::int64_t start_epoch) {
  std::string text = std::string(header) + "\n";
  if (const auto old = read_text(fs, path)) {
    const std::size_t columns = split(header, ',').size();
    for (const std::string& row : split(*old, '\n')) {
      if (is_kept(row, columns, epoch_column, start_epoch)) {
        text += row + "\n";
      }
    }
  }
  write_file_atomically(fs, path, text).value();
  return fs.append(path).value();
}

} // namespace

CsvSink::CsvSink(
    FileSystem& fs,
    const RunFolder& folder,
    std::int64_t start_epoch,
    std::int64_t log_interval)
    : log_interval_(log_interval),
      results_(open_csv(
          fs,
          folder.file("results.csv"),
          kResultsHeader,
          /*epoch_column=*/0,
          start_epoch)),
      steps_(open_csv(
          fs,
          folder.file("steps.csv"),
          kStepsHeader,
          /*epoch_column=*/1,
          start_epoch)) {}

void CsvSink::on_step(const StepRecord& record) {
  if (!record.is_logged(log_interval_)) {
    return;
  }
  const std::string row = format(
      "{},{},{},{}\n",
      record.step,
      record.epoch,
      shortest(record.loss),
      shortest(record.lr));
  steps_->write(as_byte_span(row)).value();
}

void CsvSink::on_epoch(const EpochRecord& record) {
  const std::string row = format(
      "{},{},{},{},{},{},{},{},{},{:.1f},{:.3f}\n",
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
      record.train.seconds);
  results_->write(as_byte_span(row)).value();
}

} // namespace lockstep::train
