// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/event_observer.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

/// A number and what TensorBoard calls it.
using Points = EventObserver::Points;

// Top-1 and top-5 have had these names since before there were other metrics.
std::string tag_of(std::string_view metric, std::string_view part) {
  return metric == "top1"   ? format("Accuracy/{}", part)
         : metric == "top5" ? format("Accuracy/{} top 5", part)
                            : format("{}/{}", metric, part);
}

/// What was not measured has no point.
void add_score(Points& points, const Score& score, std::string_view part) {
  points.emplace_back(format("Loss/{}", part), score.loss);
  for (const MetricValue& metric : score.metrics) {
    if (!std::isnan(metric.value)) {
      points.emplace_back(tag_of(metric.name, part), metric.value);
    }
  }
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
        {{"Loss/batch", record.loss}, {"LearningRate", record.lr}});
  }
}

void EventObserver::on_epoch(const EpochRecord& record) {
  Points points;
  add_score(points, record.train, "train");
  if (record.test) {
    add_score(points, *record.test, "test");
  }
  points.emplace_back("ImagesPerSecond", record.images_per_second);
  add(record.step, points);
}

void EventObserver::add(std::int64_t step, const Points& points) {
  if (events_ == nullptr) {
    return;
  }
  std::vector<report::Scalar> scalars;
  scalars.reserve(points.size());
  for (const auto& [tag, value] : points) {
    scalars.push_back({.tag = tag, .value = static_cast<float>(value)});
  }
  files_.report(events_->add(step, scalars));
}

} // namespace lockstep::train
