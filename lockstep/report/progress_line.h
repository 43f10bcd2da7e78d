// SPDX-License-Identifier: BSD-3-Clause
//
// A progress line in Keras' shape: a bar on a terminal, drawn at most 20 times
// a second by a thread of its own; a plain line now and then elsewhere.
//   ProgressLine line({.total = steps, .label = "Epoch 1/20"});
//   line.update({.done = 32, .samples = 2048, .loss = 1.4, .accuracy = 0.51});
//   line.finish();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/report/console.h"
#include "lockstep/report/progress_text.h"

namespace lockstep::report {

/// How progress is shown.
enum class ProgressStyle {
  /// A bar where lines can be overwritten, else plain lines.
  kAuto,
  /// One line every `plain_interval`, no drawing characters.
  kPlain,
  /// Nothing.
  kOff,
};

/// How a `ProgressLine` looks and works.
struct ProgressOptions {
  /// Units: steps; 0 if not known.
  std::int64_t total = 0;
  /// Stands at the front: "Epoch 1/20".
  std::string label = {};
  ProgressStyle style = ProgressStyle::kAuto;
  /// Shared with the log lines. By default one of its own on stderr.
  /// Ownership: must outlive the progress line.
  Console* console = nullptr;
  /// What samples are called in the rate.
  std::string unit = "img";
  std::chrono::milliseconds refresh = std::chrono::milliseconds(50);
  std::chrono::milliseconds plain_interval = std::chrono::seconds(30);
  /// The time; a test may bring its own.
  std::function<Clock::time_point()> now = Clock::now;
  /// Off: no thread; the caller calls `tick`.
  bool timer = true;
};

/// What one `update` says. Values that are absent keep what was shown before.
struct ProgressUpdate {
  /// Units: steps since the start.
  std::int64_t done = 0;
  /// Units: samples since the start, for the rate.
  std::int64_t samples = 0;
  std::optional<double> loss = {};
  /// Fraction from 0 to 1.
  std::optional<double> accuracy = {};
};

/// Threads: `update` from one thread; it only stores numbers (some 30 ns).
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options = {});
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Without `finish`, what was drawn last stays.
  ~ProgressLine();

  void update(const ProgressUpdate& update);
  /// Draws the last state with the time it took, and stops. May be called
  /// twice.
  void finish();
  /// Stops and leaves nothing behind, unless it is finished. May be called
  /// twice.
  void clear();
  /// Draws if it is time to; the timer's thread does the same.
  void tick();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace lockstep::report
