// SPDX-License-Identifier: BSD-3-Clause
//
// What a progress line says: numbers in, text out. No clock, no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::report {

/// Time without a meaning of its own; only differences count.
using Clock = std::chrono::steady_clock;

/// Estimates speed from what was done at which time.
class RateMeter {
 public:
  /// Says that `done` steps and `samples` samples were complete at `time`.
  /// The first call is the base line: the first step is slower than the rest
  /// (allocation, warm-up) and does not count.
  void observe(std::int64_t done, std::int64_t samples, Clock::time_point time);

  /// Units: seconds; the median of the last steps. None before two calls.
  [[nodiscard]] std::optional<double> step_seconds() const;
  /// Units: samples per second since the first call.
  [[nodiscard]] std::optional<double> samples_per_second() const;
  /// Units: seconds from `now` until `total` steps are done.
  [[nodiscard]] std::optional<double> remaining_seconds(
      std::int64_t total,
      Clock::time_point now) const;

 private:
  struct Point {
    std::int64_t done = 0;
    std::int64_t samples = 0;
    Clock::time_point time = {};
  };
  std::optional<Point> first_;
  Point last_;
  // Ring of the newest measurements.
  std::vector<double> step_seconds_;
  std::size_t next_ = 0;
};

/// All that a line can show. Absent parts are left out.
struct ProgressFacts {
  std::string label = {};
  std::int64_t done = 0;
  std::int64_t total = 0;
  /// Time that is left, or since the start once all is done. Units: seconds.
  std::optional<double> seconds = {};
  bool finished = false;
  /// Units: `unit` per second.
  std::optional<double> rate = {};
  std::string unit = "img";
  std::optional<double> accuracy = {};
  std::optional<double> loss = {};
};

/// How a line is drawn.
struct ProgressLook {
  /// Units: columns. Parts are left out until the line fits.
  int width = 80;
  bool unicode = false;
  bool colour = false;
};

/// `Epoch 1/20 32/938 [===>....] 0:00:12 1843 img/s - accuracy: 0.5100 - ...`
std::string draw_bar(const ProgressFacts& facts, const ProgressLook& look);

/// `Epoch 1/20: 32/938 (3 %), eta 0:00:12, 1843 img/s, accuracy 0.5100, ...`
std::string plain_line(const ProgressFacts& facts);

} // namespace lockstep::report
