// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/meter.h"

#include <algorithm>

#include "lockstep/base/strings.h"

namespace lockstep::train {

void Meter::start(double average, std::int64_t count) {
  sum_ += average * static_cast<double>(count);
  count_ += count;
}

void Meter::add(double value, std::int64_t count) {
  recent_[size_ % kWindow] = value;
  ++size_;
  sum_ += value * static_cast<double>(count);
  count_ += count;
}

double Meter::average() const {
  return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_);
}

double Meter::median() const {
  auto values = recent_;
  const std::size_t size = std::min(size_, kWindow);
  if (size == 0) {
    return 0.0;
  }
  auto* const first = values.data();
  auto* const middle = first + static_cast<std::ptrdiff_t>((size - 1) / 2);
  std::nth_element(first, middle, first + static_cast<std::ptrdiff_t>(size));
  return *middle;
}

std::string Meter::text() const {
  return format("{:.4f} ({:.4f})", median(), average());
}

} // namespace lockstep::train
