// SPDX-License-Identifier: BSD-3-Clause
//
// The version of Lockstep, which CMake reads from here, and of its compiler.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace lockstep {

/// Semantic version, `MAJOR.MINOR.PATCH`.
inline constexpr std::string_view kVersion = "0.1.0";

/// Name and version of the compiler: "GCC 12.2.0".
#ifdef __clang__
inline constexpr std::string_view kCompiler = __VERSION__;
#else
inline constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

} // namespace lockstep
#pragma GCC visibility pop
