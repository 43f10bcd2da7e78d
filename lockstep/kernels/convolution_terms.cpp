// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/convolution_terms.h"

#include <algorithm>

namespace lockstep::kernels {
namespace {

std::int64_t along(at::IntArrayRef numbers, std::size_t direction) {
  return numbers.size() == 1 ? numbers[0] : numbers[direction];
}

bool goes_on(const Term& run, const Term& next) {
  return next.output == run.output && next.pixel == run.pixel + run.length &&
         next.tap == run.tap + run.length;
}

void add_term(std::vector<Term>& terms, const Term& next) {
  if (!terms.empty() && goes_on(terms.back(), next)) {
    terms.back().length += next.length;
  } else {
    terms.push_back(next);
  }
}

// What one row of taps adds to one output.
void add_row(
    std::vector<Term>& terms,
    const TapLine& across,
    std::int64_t x,
    Term first) {
  for (std::int64_t column = 0; column < across.live_taps; ++column) {
    const auto pixel = across.pixel(x, across.first_tap + column);
    if (pixel) {
      Term next = first;
      next.pixel += *pixel;
      next.tap += column;
      add_term(terms, next);
    }
  }
}

} // namespace

TapLine::TapLine(
    std::int64_t pixel_count,
    std::int64_t tap_count,
    const KernelSteps& steps,
    std::size_t direction)
    : pixels(pixel_count),
      first_tap(tap_count),
      stride_(along(steps.stride, direction)),
      padding_(along(steps.padding, direction)),
      dilation_(along(steps.dilation, direction)) {
  const std::int64_t room =
      pixels + 2 * padding_ - dilation_ * (tap_count - 1) - 1;
  outputs = room < 0 ? 0 : room / stride_ + 1;
  std::int64_t end = 0;
  for (std::int64_t tap = 0; tap < tap_count; ++tap) {
    for (std::int64_t output = 0; output < outputs; ++output) {
      if (pixel(output, tap)) {
        first_tap = std::min(first_tap, tap);
        end = tap + 1;
      }
    }
  }
  live_taps = std::max<std::int64_t>(end - first_tap, 0);
}

std::optional<std::int64_t> TapLine::pixel(
    std::int64_t output,
    std::int64_t tap) const {
  const std::int64_t at = output * stride_ - padding_ + tap * dilation_;
  return at >= 0 && at < pixels ? std::optional(at) : std::nullopt;
}

std::vector<Term> convolution_terms(
    const TapLine& down,
    const TapLine& across) {
  std::vector<Term> terms;
  for (std::int64_t y = 0; y < down.outputs; ++y) {
    for (std::int64_t x = 0; x < across.outputs; ++x) {
      for (std::int64_t row = 0; row < down.live_taps; ++row) {
        if (const auto pixel = down.pixel(y, down.first_tap + row)) {
          add_row(
              terms,
              across,
              x,
              {.output = y * across.outputs + x,
               .pixel = *pixel * across.pixels,
               .tap = row * across.live_taps,
               .length = 1});
        }
      }
    }
  }
  return terms;
}

} // namespace lockstep::kernels
