// SPDX-License-Identifier: BSD-3-Clause
//
// Weights whose names differ from the model's but whose order and shapes agree
// (`ckpt::match_by_position` proves it), under the model's names.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/tensor/state_dict.h"

namespace lockstep {

/// A file's weights laid along a model's.
struct Positioned {
  /// What found a place, under the model's names; module versions as well.
  StateDict weights = {};
  /// Name in the file, name in the model; in order.
  std::vector<std::pair<std::string, std::string>> mapping = {};
  /// Entries of the file that found none, or that are no tensors.
  std::vector<std::string> unexpected_keys = {};
};

/// With `first` above 0 that many tensors of the file go to as many of the
/// model, the i-th to the i-th, and the rest of the file nowhere. Ownership:
/// tensors alias those of `file`. Errors: throws what `ckpt::match_by_position`
/// returns; with `first` kInvalidArgument if a side has fewer, kMismatch
/// (E_NO_MATCH) if two shapes differ.
Positioned lay_by_position(
    const StateDict& file,
    const StateDict& model,
    std::int64_t first = 0);

/// What a load that failed on names or shapes should try or look at: by
/// position, if that is `by_position`'s absence alone; where the shapes first
/// differ, if it was by position. Empty otherwise.
std::string
position_hint(const StateDict& file, const StateDict& model, bool by_position);

} // namespace lockstep
