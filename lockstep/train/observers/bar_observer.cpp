// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/bar_observer.h"

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/observers/stopwatch.h"

namespace lockstep::train {

void BarObserver::on_start(const StartRecord& record) {
  epochs_ = record.epochs;
  counted_ = static_cast<double>(record.samples);
  loss_ = record.train.loss * counted_;
  right_ = record.train.metric("top1").value_or(0.0) / 100.0 * counted_;
}

void BarObserver::on_step(const StepRecord& record) {
  if (record.epoch != epoch_) {
    samples_ = 0;
    if (epoch_ != -1) {
      counted_ = loss_ = right_ = 0.0;
    }
    epoch_ = record.epoch;
    line_ = std::make_unique<report::ProgressLine>(report::ProgressOptions{
        .total = record.batches,
        .label = format("Epoch {}/{}", record.epoch, epochs_),
        .console = &console_});
  }
  const auto count = static_cast<double>(record.samples);
  samples_ += record.samples;
  counted_ += count;
  loss_ += record.loss * count;
  const auto top1 = find_metric(record.metrics, "top1");
  right_ += top1.value_or(0.0) / 100.0 * count;
  line_->update(
      {.done = record.batch + 1,
       .samples = samples_,
       .loss = loss_ / counted_,
       .accuracy = top1 ? std::optional(right_ / counted_) : std::nullopt});
  if (record.batch + 1 == record.batches) {
    line_->finish();
  }
}

void BarObserver::on_epoch(const EpochRecord& record) {
  if (record.test) {
    console_.print(test_text(*record.test));
  }
}

void BarObserver::on_end(const EndRecord& record) {
  if (line_ != nullptr) {
    line_->clear(); // of an epoch that was stopped
  }
  console_.print("Training time " + to_string(record.times));
}

} // namespace lockstep::train
