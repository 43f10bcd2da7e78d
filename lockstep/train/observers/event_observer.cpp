// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/event_observer.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/train/observers/metric_row.h"

namespace lockstep::train {
namespace {

/// What TensorBoard calls a column of a row.
struct Tag {
  std::string_view tag = {};
  std::string_view column = {};
};

constexpr std::array kStepTags{
    Tag{"Loss/batch", "loss"},
    Tag{"LearningRate", kRateColumn}};
constexpr std::array kEpochTags{
    Tag{"Loss/train", kTrainLossColumn},
    Tag{"Loss/test", kTestLossColumn},
    Tag{"Accuracy/train", kTrainAccuracyColumn},
    Tag{"Accuracy/test", kTestAccuracyColumn},
    Tag{"Accuracy/test top 5", "val_top5"},
    Tag{"ImagesPerSecond", "images_per_s"}};

/// What was not measured has no point.
std::vector<report::Scalar> points_of(
    const MetricRow& row,
    std::span<const Tag> tags) {
  std::vector<report::Scalar> points;
  for (const auto& [tag, column] : tags) {
    if (const auto number = row.number(column)) {
      points.push_back({.tag = tag, .value = static_cast<float>(*number)});
    }
  }
  return points;
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
    add(record.step, points_of(row_of(record), kStepTags));
  }
}

void EventObserver::on_epoch(const EpochRecord& record) {
  add(record.step, points_of(row_of(record), kEpochTags));
}

void EventObserver::add(
    std::int64_t step,
    std::span<const report::Scalar> scalars) {
  if (events_ != nullptr) {
    files_.report(events_->add(step, scalars));
  }
}

} // namespace lockstep::train
