// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

namespace lockstep::test {
namespace {

using nlohmann::json;

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

} // namespace

std::vector<TraceFileEvent> TraceFile::named(
    const std::string& name,
    const std::string& lane,
    int rank) const {
  std::vector<TraceFileEvent> found;
  for (const TraceFileEvent& event : events) {
    if (event.name == name && event.lane == lane && event.rank == rank) {
      found.push_back(event);
    }
  }
  return found;
}

std::set<std::string> TraceFile::lanes(int rank) const {
  std::set<std::string> found;
  for (const TraceFileEvent& event : events) {
    if (event.rank == rank) {
      found.insert(event.lane);
    }
  }
  return found;
}

std::string TraceFile::misplaced() const {
  std::vector<TraceFileEvent> sorted = events;
  std::ranges::stable_sort(sorted, {}, [](const TraceFileEvent& event) {
    return std::tuple(event.rank, event.lane, event.start, -event.end);
  });
  std::vector<TraceFileEvent> open;
  for (const TraceFileEvent& event : sorted) {
    while (!open.empty() &&
           (open.back().rank != event.rank || open.back().lane != event.lane ||
            open.back().end <= event.start)) {
      open.pop_back();
    }
    if (!open.empty() && !open.back().holds(event)) {
      return event.name + " begins in " + open.back().name + " in lane " +
             event.lane + ", and ends after it";
    }
    open.push_back(event);
  }
  return {};
}

TraceFile read_trace(const std::string& text) {
  const json root = json::parse(text);
  TraceFile trace;
  std::map<std::pair<int, int>, std::string> lanes;
  for (const json& event : root.at("traceEvents")) {
    const std::string name = event.at("name");
    const int rank = event.at("pid");
    const int lane = event.at("tid");
    if (name == "process_name") {
      trace.processes.insert(event.at("args").at("name"));
    } else if (name == "thread_name") {
      lanes[{rank, lane}] = event.at("args").at("name");
    } else if (event.at("ph") == "X") {
      const std::int64_t start = nanoseconds(event.at("ts"));
      trace.events.push_back(
          {.name = name,
           .category = event.at("cat"),
           .rank = rank,
           .lane = lanes.at({rank, lane}),
           .start = start,
           .end = start + nanoseconds(event.at("dur"))});
    }
  }
  return trace;
}

} // namespace lockstep::test
