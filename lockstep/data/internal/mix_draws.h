// SPDX-License-Identifier: BSD-3-Clause
//
// What `mix_up` and `cut_mix` draw for a batch.
#pragma once

#include <cstdint>

#include "lockstep/data/internal/draws.h"

namespace lockstep::internal {

/// A number of the distribution Beta(alpha, alpha).
double drawn_beta(double alpha, Draws& draws);

/// The box of CutMix. Units: pixels; `right` and `bottom` are outside.
struct CutBox {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;

  friend bool operator==(const CutBox&, const CutBox&) = default;
};

/// The box around (x, y) whose share of the image is 1 - lambda, without what
/// lies outside of the image.
CutBox cut_box(
    double lambda,
    std::int64_t x,
    std::int64_t y,
    std::int64_t height,
    std::int64_t width);

} // namespace lockstep::internal
