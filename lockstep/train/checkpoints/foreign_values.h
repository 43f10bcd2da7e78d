// SPDX-License-Identifier: BSD-3-Clause
//
// Values of other programs' checkpoints, as ours have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep::train {

/// Python counts how often each epoch is named; our flag names them one by one.
/// Nothing for what no flag could say.
std::optional<ckpt::Value> milestones_of(const ckpt::Dict& counter);

/// An average of the weights.
struct ForeignAverage {
  /// Its name in the file.
  std::string key = {};
  ckpt::Value weights = {};
  /// At least one, if the file does not say it.
  std::int64_t updates = 1;
};

/// timm's `state_dict_ema`, and torchvision's `model_ema`, which has a number
/// beside the weights, whose names begin with "module."; nothing for a file
/// without an average.
std::optional<ForeignAverage> foreign_average(const ckpt::Value& root);

} // namespace lockstep::train
