// SPDX-License-Identifier: BSD-3-Clause
//
// The version of Lockstep. CMake reads it from here.
#pragma once

#include <string_view>

namespace lockstep {

/// Semantic version, `MAJOR.MINOR.PATCH`.
inline constexpr std::string_view kVersion = "0.1.0";

} // namespace lockstep
