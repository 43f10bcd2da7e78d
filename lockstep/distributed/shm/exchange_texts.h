// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace lockstep::dist::internal {

/// Gives every rank the texts of all ranks, by rank. `key`: what they are
/// about.
using ExchangeTexts = std::function<
    std::vector<std::string>(const std::string& key, const std::string& text)>;

} // namespace lockstep::dist::internal
