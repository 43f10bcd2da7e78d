// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/bar_observer.h"

#include "lockstep/base/strings.h"

namespace lockstep::train {

void BarObserver::on_step(const StepRecord& record) {
  if (record.epoch != epoch_) {
    epoch_ = record.epoch;
    samples_ = 0;
    loss_ = right_ = 0.0;
    line_ = std::make_unique<report::ProgressLine>(report::ProgressOptions{
        .total = record.batches,
        .label = format("Epoch {}", record.epoch),
        .console = &console_});
  }
  const auto count = static_cast<double>(record.samples);
  samples_ += record.samples;
  loss_ += record.loss * count;
  right_ += record.top1 / 100.0 * count;
  const auto total = static_cast<double>(samples_);
  line_->update(
      {.done = record.batch + 1,
       .samples = samples_,
       .loss = loss_ / total,
       .accuracy = right_ / total});
  if (record.batch + 1 == record.batches) {
    line_->finish();
  }
}

void BarObserver::on_epoch(const EpochRecord& record) {
  console_.print(format(
      "Test:  Acc@1 {:.3f} Acc@5 {:.3f}",
      record.test.top1,
      record.test.top5));
}

} // namespace lockstep::train
