// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep bench --tune`: every way to compute each convolution of a model,
// timed on this machine, beside the way that the rules choose.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cli_train/bench_request.h"
#include "lockstep/kernels/internal/convolution_times.h"

namespace lockstep::cli_train {

/// Convolutions of one shape.
struct TunedConvolution {
  std::vector<std::int64_t> input_sizes = {};
  std::vector<std::int64_t> weight_sizes = {};
  std::vector<std::int64_t> stride = {};
  std::vector<std::int64_t> padding = {};
  std::vector<std::int64_t> dilation = {};
  /// How many of them a step computes.
  std::int64_t count = 1;
  /// By Pass; empty for the gradient of images, which nobody asks for.
  std::array<kernels::AlgorithmTimes, 3> times = {};
};

struct TuneResult {
  bool has_channels_last = false;
  /// In the order in which the model computes them first.
  std::vector<TunedConvolution> convolutions = {};
  /// Others, which are LibTorch's alone: with groups, transposed, float64, of
  /// one or three dimensions.
  std::int64_t others = 0;
};

/// Each way is timed `steps` times. Errors: throws what the model throws.
TuneResult run_tune(const BenchRequest& request, const BenchProgress& progress);

} // namespace lockstep::cli_train
