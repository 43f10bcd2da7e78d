// SPDX-License-Identifier: BSD-3-Clause
//
// The sums of a direct convolution (direct_convolution.h), in all threads of
// LibTorch. Maps are [batch][position][channels]. `Number`: float, or Pair for
// maps of bfloat16.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/internal/convolution_terms.h"
#include "lockstep/kernels/internal/product_loops.h"
#include "lockstep/kernels/internal/tap_panels.h"

namespace lockstep::kernels {

/// A position of the map that is read, and the tap through which.
struct Term {
  std::int64_t from = 0;
  std::int64_t tap = 0;
};

/// What each position of the map that is written is the sum of.
using Terms = std::vector<std::vector<Term>>;

Terms terms_of_outputs(const TapTable& taps);
Terms terms_of_pixels(const TapTable& taps);

/// Which of `taps` taps occur.
std::vector<bool> used_taps(const Terms& terms, std::int64_t taps);

/// From one map into another. Ownership: borrows everything.
template <class Number>
struct DirectSums {
  const Terms& terms;
  const TapPanels<Number>& weight;
  const Stored<Number>* from = nullptr;
  std::int64_t from_positions = 0;
  /// Of each channel, or null.
  const float* bias = nullptr;
  Stored<Number>* to = nullptr;
};

template <class Number>
void convolve(const DirectSums<Number>& sums, std::int64_t batch);

/// Where the channels of each position and image, or pair of images, begin.
template <class Number>
struct MapRows {
  const Number* first = nullptr;
  std::int64_t position_step = 0;
  std::int64_t image_step = 0;
};

/// The gradient of a weight, [out][tap][in], out of the terms of its outputs.
/// Ownership: as above.
template <class Number>
struct DirectGradient {
  const Terms& terms;
  MapRows<Number> grads;
  MapRows<Number> input;
  /// Images, or pairs of them.
  std::int64_t batch = 0;
  std::int64_t taps = 0;
  std::int64_t out = 0;
  std::int64_t in = 0;
  float* to = nullptr;
};

template <class Number>
void compute_gradient(const DirectGradient<Number>& gradient);

/// [position][pair of images][channels] of [image][position][channels]; the
/// last image is beside zeros if their number is odd. `channels`: a multiple of
/// kChannelStep.
void pair_images(
    const std::uint16_t* from,
    std::int64_t batch,
    std::int64_t positions,
    std::int64_t channels,
    Pair* to);

} // namespace lockstep::kernels
