// SPDX-License-Identifier: BSD-3-Clause
//
// Builds with a sanitizer (presets dev, asan, tsan) carry its runtime: tests of
// what the program itself links, calls or holds say nothing there.
#pragma once

namespace lockstep::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

} // namespace lockstep::test
