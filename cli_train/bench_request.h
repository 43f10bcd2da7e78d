// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep bench` is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "cli_train/command_flags.h"

namespace lockstep::cli_train {

struct BenchRequest {
  ModelRequest model = {};
  c10::Device device = c10::kCPU;
  int threads = 0;
  /// Also for kernels that do not want it.
  bool channels_last = false;
  /// As `TrainConfig::amp`, "auto" decided.
  std::string amp = "off";
  std::int64_t steps = 10;
  /// Whose kernels, one or two choices (tensor/internal/kernel_choice.h): each
  /// step is made with all of them in turn, so that what disturbs one disturbs
  /// all. Each trains a model of its own, in the layout that `lockstep train`
  /// has.
  std::vector<std::string> kernels = {};
};

/// Is told how many steps are done, of how many.
using BenchProgress = std::function<void(std::int64_t, std::int64_t)>;

} // namespace lockstep::cli_train
