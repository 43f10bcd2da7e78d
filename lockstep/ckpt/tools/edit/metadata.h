// SPDX-License-Identifier: BSD-3-Clause
//
// `_metadata` beside a state_dict must follow the keys, since torch compares
// versions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// The new path of a module; nothing if its entry goes.
using PathMap =
    std::function<std::optional<std::string>(const std::string& path)>;

/// Applies `map` to each path; of two entries that meet, the first stays.
/// `outer` are paths of new modules around the old ones (version 1), put in
/// front. Does nothing without `_metadata`.
void map_metadata(
    Dict& weights,
    const PathMap& map,
    const std::vector<std::string>& outer = {});

/// Adds the entries of `other` that `weights` lacks.
void merge_metadata(Dict& weights, const Dict& other);

} // namespace lockstep::ckpt::internal
