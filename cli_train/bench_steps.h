// SPDX-License-Identifier: BSD-3-Clause
//
// Training steps of a model on random images, timed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli_train/bench_request.h"
#include "lockstep/models/internal/layer_times.h"

namespace lockstep::cli_train {

/// Steps with the kernels of one word. Units: seconds.
struct BenchSide {
  std::string kernels = {};
  bool has_channels_last = false;
  /// Of whole steps, in their order: forward, loss, backward, update.
  std::vector<double> steps = {};
  /// Of one step: the mean over those that were observed, which are others.
  std::vector<LayerTime> layers = {};
  double update_seconds = 0;

  [[nodiscard]] double median_step() const;
};

struct BenchResult {
  std::vector<BenchSide> sides = {};
  /// Multiplications with additions of a step, by the name of the layer: of the
  /// forward pass and of both gradients. `total`: of the whole model.
  std::vector<std::pair<std::string, double>> layer_operations = {};
  double operations = 0;
  /// Of this machine with as many threads, or of the device, in this run; as
  /// `measure_peak` and `measure_device_peak`.
  double peak_before = 0;
  double peak_after = 0;
  /// Of the process, or of the device's tensors. Units: bytes.
  std::int64_t peak_memory = 0;
};

/// Errors: throws what the model throws.
BenchResult run_bench(
    const BenchRequest& request,
    const BenchProgress& progress);

} // namespace lockstep::cli_train
