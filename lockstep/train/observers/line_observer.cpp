// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/line_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/stopwatch.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kEpoch = "Epoch: [";
constexpr std::string_view kTest = "Test:  ";

/// "[ 50/938]", as wide as "[938/938]".
std::string position(std::int64_t batch, std::int64_t batches) {
  const std::string total = std::to_string(batches);
  std::string now = std::to_string(batch);
  now.insert(0, total.size() - now.size(), ' ');
  return format("[{}/{}]", now, total);
}

} // namespace

bool is_observed_line(std::string_view line) {
  return line.starts_with(kEpoch) || line.starts_with(kTest);
}

LineObserver::LineObserver(LogSink& log, std::int64_t log_interval)
    : log_(log), log_interval_(log_interval) {}

void LineObserver::on_start(const StartRecord& record) {
  epoch_ = record.epoch;
  meters_ = {};
  if (record.samples > 0) {
    meters_.loss.start(record.train.loss, record.samples);
    meters_.top1.start(record.train.top1.value_or(0.0), record.samples);
    meters_.top5.start(record.train.top5.value_or(0.0), record.samples);
  }
}

void LineObserver::on_step(const StepRecord& record) {
  if (record.epoch != epoch_) {
    meters_ = {};
    epoch_ = record.epoch;
    shown_ = 0.0;
  }
  ++steps_;
  samples_ += record.samples;
  meters_.loss.add(record.loss, record.samples);
  meters_.top1.add(record.top1.value_or(0.0), record.samples);
  meters_.top5.add(record.top5.value_or(0.0), record.samples);
  meters_.time.add(record.seconds);
  meters_.data.add(record.data_seconds);
  if (!record.is_logged(log_interval_)) {
    return;
  }
  const auto left = static_cast<double>(record.batches - record.batch - 1);
  log_.write(
      LogLevel::kInfo,
      format(
          "{}{}]  {}  eta: {}  lr: {}  img/s: {}  loss: {}  "
          "{}time: {:.4f}  data: {:.4f}",
          kEpoch,
          record.epoch,
          position(record.batch, record.batches),
          human_seconds(meters_.time.average() * left),
          format("{:.6g}", record.lr),
          rate(record.epoch_seconds),
          meters_.loss.text(),
          record.top1 ? format(
                            "acc1: {}  acc5: {}  ",
                            meters_.top1.text(),
                            meters_.top5.text())
                      : std::string(),
          meters_.time.average(),
          meters_.data.average()));
  steps_ = 0;
  samples_ = 0;
  shown_ = record.epoch_seconds;
}

std::string LineObserver::rate(double epoch_seconds) const {
  if (steps_ == 1 && log_interval_ > 1) {
    return "-";
  }
  return format(
      "{:.1f}",
      static_cast<double>(samples_) / (epoch_seconds - shown_));
}

void LineObserver::on_epoch(const EpochRecord& record) {
  log_.write(
      LogLevel::kInfo,
      format(
          "{}{}] Total time: {}, training at {:.1f} img/s",
          kEpoch,
          record.epoch,
          to_string(record.times),
          record.images_per_second));
  if (record.test) {
    log_.write(LogLevel::kInfo, test_text(*record.test));
  }
}

std::string test_text(const Score& test) {
  return test.top1 ? format(
                         "{}Acc@1 {:.3f} Acc@5 {:.3f}",
                         kTest,
                         *test.top1,
                         test.top5.value_or(0.0))
                   : format("{}loss {:.6g}", kTest, test.loss);
}

void LineObserver::on_end(const EndRecord& record) {
  log_.write(LogLevel::kInfo, "Training time " + to_string(record.times));
}

} // namespace lockstep::train
