// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/step_profile.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

using Spans = std::span<const RecordedSpan>;
/// Numbers of lanes. "main" comes first, then short names: "replica 2" before
/// "replica 10".
using LaneKey = std::pair<std::size_t, std::string>;
using LaneNumbers = std::map<LaneKey, int>;

constexpr std::string_view kMetadata = "M";
constexpr std::string_view kComplete = "X";
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

LaneKey key_of(const std::string& lane) {
  return {lane == "main" ? 0 : lane.size(), lane};
}

LaneNumbers number_lanes(Spans spans) {
  LaneNumbers lanes;
  for (const RecordedSpan& span : spans) {
    lanes.try_emplace(key_of(span.lane), 0);
  }
  int count = 0;
  for (auto& [key, number] : lanes) {
    number = count++;
  }
  return lanes;
}

Json event(std::string_view phase, std::string_view name, int rank, int lane) {
  Json json = Json::object();
  json.set("ph", phase).set("name", name).set("pid", rank).set("tid", lane);
  return json;
}

// What viewers call a process or a thread, and where they show it.
void add_name(
    std::vector<std::string>& lines,
    std::string_view what,
    int rank,
    int lane,
    const std::string& name) {
  Json named = event(kMetadata, format("{}_name", what), rank, lane);
  named.set("args", Json::object().set("name", name));
  Json sorted = event(kMetadata, format("{}_sort_index", what), rank, lane);
  sorted.set(
      "args",
      Json::object().set("sort_index", what == "process" ? rank : lane));
  lines.push_back(named.dump());
  lines.push_back(sorted.dump());
}

// Units: nanoseconds to microseconds, which the format has.
double microseconds(std::int64_t nanoseconds) {
  constexpr double kPerMicrosecond = 1000;
  return static_cast<double>(nanoseconds) / kPerMicrosecond;
}

// A line for each event, with commas between; times since `base`.
std::string events_text(Spans spans, int rank, std::int64_t base) {
  const LaneNumbers lanes = number_lanes(spans);
  std::vector<std::string> lines;
  add_name(lines, "process", rank, 0, format("rank {}", rank));
  for (const auto& [key, number] : lanes) {
    add_name(lines, "thread", rank, number, key.second);
  }
  for (const RecordedSpan& span : spans) {
    Json json = event(kComplete, span.name, rank, lanes.at(key_of(span.lane)));
    json.set("cat", span.category)
        .set("ts", microseconds(span.start - base))
        .set("dur", microseconds(span.duration));
    lines.push_back(json.dump());
  }
  return join(lines, ",\n");
}

std::int64_t first_start(Spans spans) {
  std::int64_t first = kNever;
  for (const RecordedSpan& span : spans) {
    first = std::min(first, span.start);
  }
  return first;
}

} // namespace

StepProfile::StepProfile(std::int64_t steps, dist::ProcessGroup group)
    : wanted_(steps), group_(std::move(group)) {}

void StepProfile::begin_step() {
  if (wanted_ > 0 && done_ == kWarmUp) {
    recorder_ = TraceRecorder::begin();
  }
}

void StepProfile::end_step() {
  ++done_;
}

StepProfile::Trace StepProfile::take() {
  std::vector<RecordedSpan> spans;
  if (recorder_ != nullptr) {
    spans = recorder_->take();
  }
  recorder_.reset();
  Trace trace{.steps = std::clamp<std::int64_t>(done_ - kWarmUp, 0, wanted_)};
  wanted_ = 0;
  std::int64_t base = kNever;
  const ckpt::Value first(first_start(spans));
  for (const ckpt::Value& start : dist::all_gather_object(group_, first)) {
    base = std::min(base, *start.as_int());
    trace.missing_ranks += *start.as_int() == kNever ? 1 : 0;
  }
  if (base == kNever) {
    return trace;
  }
  const ckpt::Value own(events_text(spans, group_.rank(), base));
  std::vector<std::string> texts;
  for (const ckpt::Value& text : dist::gather_object(group_, own)) {
    texts.emplace_back(*text.as_string());
  }
  if (texts.empty()) {
    return trace; // for rank 0
  }
  trace.text = format(
      "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\","
      "\"baseTimeNanoseconds\":{},\"traceEvents\":[\n{}\n]}}\n",
      base,
      join(texts, ",\n"));
  return trace;
}

} // namespace lockstep::train
