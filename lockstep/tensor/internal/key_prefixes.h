// SPDX-License-Identifier: BSD-3-Clause
//
// Fronts of names, up to a dot: what two lists of keys have around them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lockstep::internal {

using Keys = std::vector<std::string>;

bool all_start_with(
    std::span<const std::string> keys,
    const std::string& prefix);

/// Whether a key has a dot at `from` or later.
bool has_dot(std::span<const std::string> keys, std::size_t from);

/// The longest prefix that all keys share, then the shorter ones.
Keys shared_prefixes(std::span<const std::string> keys);

/// A prefix that turns keys of one side into keys of the other.
struct Cover {
  std::string prefix = {};
  std::size_t count = 0;
};

/// Those that turn half of `bare` or more into keys of `longer`.
std::vector<Cover> covers(
    std::span<const std::string> bare,
    std::span<const std::string> longer);

/// The prefixes that turn each of `bare` into one of `longer`.
Keys covering_prefixes(
    std::span<const std::string> bare,
    std::span<const std::string> longer);

} // namespace lockstep::internal
