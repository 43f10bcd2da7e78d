// SPDX-License-Identifier: BSD-3-Clause
//
// A series of numbers as torchvision's log lines show it: the median of the
// last values and the average of all.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace lockstep::train {

/// Keeps the last 20 values and a weighted sum of all.
class Meter {
 public:
  /// Counts `count` samples with this average that came before; they are not
  /// among the last values.
  void start(double average, std::int64_t count);

  /// Adds `value`, which stands for `count` samples.
  void add(double value, std::int64_t count = 1);

  /// Average of all values by their counts; 0 before the first.
  [[nodiscard]] double average() const;
  /// Lower median of the last values, as `torch.median`; 0 before the first.
  [[nodiscard]] double median() const;
  /// "2.1034 (2.3012)": median and average.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t kWindow = 20;
  std::array<double, kWindow> recent_ = {};
  std::size_t size_ = 0;
  double sum_ = 0.0;
  std::int64_t count_ = 0;
};

} // namespace lockstep::train
