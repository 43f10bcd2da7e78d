// SPDX-License-Identifier: BSD-3-Clause
//
// What the threads of a process do when, for `lockstep train --profile`. A span
// is a user scope of LibTorch's RecordFunction, as an operator is a function
// scope, so LibTorch's own profilers see spans, too. While nobody records, one
// only asks whether somebody does.
//   { const TraceSpan span("forward"); ... }
//   { const TraceSpan span("forward", "replica", 1); ... } // its own lane
//
//   const auto recorder = TraceRecorder::begin(); // from now on, all threads
//   for (const RecordedSpan& span : recorder->take()) { ... }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/record_function.h>

namespace lockstep {

/// From its construction to its end. A lane is a row of the trace; without one
/// the span is in that of the span around it, else in its thread's.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view name, std::string_view lane = {});
  /// In the lane "replica 1".
  TraceSpan(std::string_view name, std::string_view lane, std::size_t number);
  /// "ProfilerStep#12", which viewers know as a step.
  static TraceSpan of_step(std::int64_t number) {
    return TraceSpan(StepNumber{number});
  }

 private:
  struct StepNumber {
    std::int64_t value = 0;
  };
  explicit TraceSpan(StepNumber number);

  at::RecordFunction scope_;
};

/// Whether spans are recorded at present, by anybody.
[[nodiscard]] bool is_traced();

/// A span that another thread may end, by destroying it. Spans that begin
/// meanwhile are not inside of it. Null if nobody records.
std::unique_ptr<at::RecordFunction> begin_async_span(
    std::string_view name,
    std::string_view lane);

/// One span, or the call of an operator.
struct RecordedSpan {
  std::string name = {};
  /// As torch.profiler calls them: "user_annotation" or "cpu_op".
  std::string_view category = {};
  /// "main" of the thread that made the recorder; "replica 1"; "loader (2)" if
  /// spans of "loader" overlap. Those of one lane lie inside each other or one
  /// after the other.
  std::string lane = {};
  /// Since 1970, and how long. One that had not ended lasts until `take`.
  /// Units: nanoseconds.
  std::int64_t start = 0;
  std::int64_t duration = 0;
};

/// Records spans and operators of all threads while it lives.
class TraceRecorder {
 public:
  /// Null if this process has one already.
  static std::unique_ptr<TraceRecorder> begin();
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  /// What began since `begin`, in that order. It records nothing from now on.
  [[nodiscard]] std::vector<RecordedSpan> take();

 private:
  TraceRecorder();

  at::CallbackHandle handle_;
};

} // namespace lockstep
