// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/event_observer.h"

#include <array>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

report::Scalar scalar(std::string_view tag, double value) {
  return {.tag = tag, .value = static_cast<float>(value)};
}

} // namespace

EventObserver::EventObserver(
    FileSystem& fs,
    RunFiles& files,
    std::string folder,
    std::int64_t log_interval)
    : fs_(fs),
      files_(files),
      folder_(std::move(folder)),
      log_interval_(log_interval) {}

void EventObserver::on_start(const StartRecord& record) {
  auto events = report::EventFile::create(fs_, folder_, record.step + 1);
  if (!events) {
    files_.report(events.error());
    return;
  }
  events_ = std::make_shared<report::EventFile>(*std::move(events));
  files_.also_sync([file = events_] { return file->sync(); });
}

void EventObserver::on_step(const StepRecord& record) {
  if (record.is_logged(log_interval_)) {
    add(record.step,
        std::array{
            scalar("Loss/batch", record.loss),
            scalar("LearningRate", record.lr)});
  }
}

void EventObserver::on_epoch(const EpochRecord& record) {
  const Score test = record.test.value_or(Score());
  std::vector<report::Scalar> scalars{scalar("Loss/train", record.train.loss)};
  const auto add_known =
      [&scalars](std::string_view tag, const std::optional<double>& value) {
        if (value) {
          scalars.push_back(scalar(tag, *value));
        }
      };
  add_known("Loss/test", record.test ? std::optional(test.loss) : std::nullopt);
  add_known("Accuracy/train", record.train.top1);
  add_known("Accuracy/test", test.top1);
  add_known("Accuracy/test top 5", test.top5);
  scalars.push_back(scalar("ImagesPerSecond", record.images_per_second));
  add(record.step, scalars);
}

void EventObserver::add(
    std::int64_t step,
    std::span<const report::Scalar> scalars) {
  if (events_ != nullptr) {
    files_.report(events_->add(step, scalars));
  }
}

} // namespace lockstep::train
