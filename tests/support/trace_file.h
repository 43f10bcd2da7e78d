// SPDX-License-Identifier: BSD-3-Clause
//
// A trace as viewers read it: what `lockstep train --profile` wrote.
//   const TraceFile trace = read_trace(text);
//   EXPECT_EQ(trace.misplaced(), "");
//   trace.named("forward", "replica 1")
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lockstep::test {

/// Units: nanoseconds.
struct TraceFileEvent {
  std::string name = {};
  std::string category = {};
  int rank = 0;
  std::string lane = {};
  std::int64_t start = 0;
  std::int64_t end = 0;

  [[nodiscard]] bool holds(const TraceFileEvent& other) const {
    return start <= other.start && other.end <= end;
  }
};

struct TraceFile {
  std::vector<TraceFileEvent> events = {};
  /// "rank 0", by the names of processes.
  std::set<std::string> processes = {};

  [[nodiscard]] std::vector<TraceFileEvent>
  named(const std::string& name, const std::string& lane, int rank = 0) const;
  [[nodiscard]] std::set<std::string> lanes(int rank = 0) const;
  /// Two events of a lane of which neither holds the other and none is over
  /// when the other begins; empty if there are none.
  [[nodiscard]] std::string misplaced() const;
};

/// Errors: throws an exception of nlohmann for anything else.
TraceFile read_trace(const std::string& text);

} // namespace lockstep::test
