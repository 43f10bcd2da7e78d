// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_terms.h"

#include <algorithm>

namespace lockstep::kernels {
namespace {

std::int64_t along(at::IntArrayRef numbers, std::size_t direction) {
  return numbers.size() == 1 ? numbers[0] : numbers[direction];
}

// The numbers below `count` for which `sees` is true.
template <class Sees>
std::vector<std::int64_t> numbers_where(std::int64_t count, Sees sees) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < count; ++i) {
    if (sees(i)) {
      found.push_back(i);
    }
  }
  return found;
}

// Puts `member` beside those that see the same. Which of a meeting's lists are
// members and which are seen: the two pointers.
void join_meeting(
    std::vector<Meeting>& meetings,
    std::vector<std::int64_t> Meeting::*members,
    std::vector<std::int64_t> Meeting::*seen,
    std::int64_t member,
    std::vector<std::int64_t> sees) {
  if (sees.empty()) {
    return;
  }
  const auto same = std::ranges::find(meetings, sees, seen);
  if (same != meetings.end()) {
    ((*same).*members).push_back(member);
    return;
  }
  Meeting& added = meetings.emplace_back();
  (added.*members).push_back(member);
  added.*seen = std::move(sees);
}

} // namespace

bool are_valid(const KernelSteps& steps) {
  const auto are_from = [](std::int64_t least, at::IntArrayRef numbers) {
    return (numbers.size() == 1 || numbers.size() == 2) &&
           std::min(numbers.front(), numbers.back()) >= least;
  };
  return are_from(1, steps.stride) && are_from(0, steps.padding) &&
         are_from(1, steps.dilation);
}

TapLine::TapLine(
    std::int64_t pixel_count,
    std::int64_t tap_count,
    const KernelSteps& steps,
    std::size_t direction)
    : pixels(pixel_count),
      taps(tap_count),
      stride_(along(steps.stride, direction)),
      padding_(along(steps.padding, direction)),
      dilation_(along(steps.dilation, direction)) {
  const std::int64_t room = pixels + 2 * padding_ - dilation_ * (taps - 1) - 1;
  outputs = room < 0 ? 0 : room / stride_ + 1;
}

std::optional<std::int64_t> TapLine::tap(
    std::int64_t output,
    std::int64_t pixel) const {
  const std::int64_t distance = pixel + padding_ - output * stride_;
  return distance >= 0 && distance % dilation_ == 0 &&
                 distance / dilation_ < taps
             ? std::optional(distance / dilation_)
             : std::nullopt;
}

bool TapLine::is_dense() const {
  for (std::int64_t output = 0; output < outputs; ++output) {
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      if (!tap(output, pixel)) {
        return false;
      }
    }
  }
  return true;
}

std::vector<std::int64_t> TapLine::dead_taps() const {
  return numbers_where(taps, [&](std::int64_t tap) {
    for (std::int64_t output = 0; output < outputs; ++output) {
      const std::int64_t pixel = output * stride_ - padding_ + tap * dilation_;
      if (pixel >= 0 && pixel < pixels) {
        return false;
      }
    }
    return true;
  });
}

TapTable::TapTable(const TapLine& down, const TapLine& across)
    : outputs_(down.outputs * across.outputs),
      pixels_(down.pixels * across.pixels),
      tap_count_(down.taps * across.taps) {
  taps_.reserve(static_cast<std::size_t>(outputs_ * pixels_));
  for (std::int64_t output = 0; output < outputs_; ++output) {
    for (std::int64_t pixel = 0; pixel < pixels_; ++pixel) {
      const auto row = down.tap(output / across.outputs, pixel / across.pixels);
      const auto column =
          across.tap(output % across.outputs, pixel % across.pixels);
      taps_.push_back(row && column ? *row * across.taps + *column : -1);
    }
  }
}

std::int64_t TapTable::tap(std::int64_t output, std::int64_t pixel) const {
  return taps_[static_cast<std::size_t>(output * pixels_ + pixel)];
}

std::vector<Meeting> TapTable::meetings_of_outputs() const {
  std::vector<Meeting> found;
  for (std::int64_t output = 0; output < outputs_; ++output) {
    join_meeting(
        found,
        &Meeting::outputs,
        &Meeting::pixels,
        output,
        numbers_where(pixels_, [&](std::int64_t pixel) {
          return tap(output, pixel) >= 0;
        }));
  }
  return found;
}

std::vector<Meeting> TapTable::meetings_of_pixels() const {
  std::vector<Meeting> found;
  for (std::int64_t pixel = 0; pixel < pixels_; ++pixel) {
    join_meeting(
        found,
        &Meeting::pixels,
        &Meeting::outputs,
        pixel,
        numbers_where(outputs_, [&](std::int64_t output) {
          return tap(output, pixel) >= 0;
        }));
  }
  return found;
}

std::vector<std::vector<TapRun>> TapTable::runs_of_taps() const {
  std::vector<std::vector<TapRun>> found(static_cast<std::size_t>(tap_count_));
  for_each([&](std::int64_t output, std::int64_t pixel, std::int64_t met) {
    auto& runs = found[static_cast<std::size_t>(met)];
    if (!runs.empty() && runs.back().output + runs.back().length == output &&
        runs.back().pixel + runs.back().length == pixel) {
      ++runs.back().length;
    } else {
      runs.push_back({.output = output, .pixel = pixel, .length = 1});
    }
  });
  return found;
}

} // namespace lockstep::kernels
