// SPDX-License-Identifier: BSD-3-Clause
//
// Which samples are for validation, where the data do not say it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/open_dataset.h"

namespace lockstep::internal {

/// Numbers of samples, in their order.
struct SplitSamples {
  std::vector<std::int64_t> train = {};
  std::vector<std::int64_t> val = {};
  /// The groups of one sample, which is in `train`.
  std::vector<std::int64_t> single_groups = {};
};

/// Deals the samples of each group (a class; one for all if there are none) by
/// a hash of their names: one sample more or less in a group moves one other at
/// most from part to part.
/// Errors: throws kInvalidArgument for a share outside (0, 1); `path` is for
/// the message.
SplitSamples split_samples(
    std::span<const std::int64_t> groups,
    const std::function<std::string(std::int64_t index)>& name_of,
    const SplitOptions& split,
    const std::string& path);

} // namespace lockstep::internal
