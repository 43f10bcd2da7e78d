// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/line_observer.h"

#include <algorithm>
#include <cmath>

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

// "top1", "top5".
bool is_accuracy_name(std::string_view name) {
  return name.starts_with("top") && name.size() > 3;
}

} // namespace

void LineObserver::Meters::add(
    const std::vector<MetricValue>& values,
    std::int64_t samples) {
  for (const MetricValue& value : values) {
    auto meter = std::ranges::find(
        metrics,
        value.name,
        &std::pair<std::string, Meter>::first);
    if (meter == metrics.end()) {
      meter = metrics.emplace(metrics.end(), value.name, Meter());
    }
    if (!std::isnan(value.value)) {
      meter->second.add(value.value, samples);
    }
  }
}

std::string LineObserver::Meters::metrics_text() const {
  std::string text;
  for (const auto& [name, meter] : metrics) {
    text += format(
        "{}: {}  ",
        is_accuracy_name(name) ? "acc" + name.substr(3) : name,
        meter.text());
  }
  return text;
}

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
    for (const MetricValue& metric : record.train.metrics) {
      meters_.metrics.emplace_back(metric.name, Meter());
      if (!std::isnan(metric.value)) {
        meters_.metrics.back().second.start(metric.value, record.samples);
      }
    }
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
  meters_.add(record.metrics, record.samples);
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
          meters_.metrics_text(),
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

std::string metrics_text(std::span<const MetricValue> metrics) {
  std::vector<std::string> parts;
  for (const MetricValue& metric : metrics) {
    const bool is_percent = is_accuracy_name(metric.name);
    parts.push_back(format(
        "{} {}",
        is_percent ? "Acc@" + metric.name.substr(3) : metric.name,
        is_percent ? format("{:.3f}", metric.value)
                   : format("{:.6g}", metric.value)));
  }
  return join(parts, " ");
}

std::string test_text(const Score& test) {
  return test.metrics.empty()
             ? format("{}loss {:.6g}", kTest, test.loss)
             : format("{}{}", kTest, metrics_text(test.metrics));
}

void LineObserver::on_end(const EndRecord& record) {
  log_.write(LogLevel::kInfo, "Training time " + to_string(record.times));
}

} // namespace lockstep::train
