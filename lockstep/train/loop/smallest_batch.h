// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a model can train on the smallest part of a batch that a device gets:
// said before the first epoch, not at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/train/loop/setup.h"

namespace lockstep::train {

/// The fewest samples that a device gets at once in an epoch: of `samples`, at
/// least one, in batches of `batch`, each over `devices` as `parallel::scatter`
/// deals them.
std::int64_t
smallest_share(std::int64_t samples, std::int64_t batch, std::int64_t devices);

/// Tries one sample on a copy of a model with batch norms, if a device gets one
/// at some time. The model and the random numbers stay as they are. A module
/// that cannot be copied, or fails otherwise, is left to the first step.
/// Errors: throws `one_value_error`.
void check_smallest_batch(const Setup& setup);

/// kInvalidArgument if LibTorch says in `text` that a batch norm has one value
/// per channel.
std::optional<Error> one_value_error(std::string_view text);

} // namespace lockstep::train
