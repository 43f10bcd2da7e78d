// SPDX-License-Identifier: BSD-3-Clause
//
// The bounds that no flag changes, in one place: `lockstep ckpt limits` prints
// them with the reasons that stand in limits.cpp. What grows with a file is
// bounded by its budget; these are lengths and levels of what a format writes
// short, and of what code goes down by recursion.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::ckpt {

/// Units: bytes.
inline constexpr std::uint64_t kMaxNameBytes = 4096;
inline constexpr std::size_t kMaxIntegerBytes = 1024;
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
inline constexpr std::uint64_t kMaxIndexBytes = 100'000'000;
inline constexpr std::uint64_t kMaxNpyHeader = 1 << 16;
inline constexpr std::uint64_t kMaxTarHeader = 1 << 16;

/// Units: levels, keys, archives in archives.
inline constexpr std::size_t kMaxDcpPath = 200;
inline constexpr std::size_t kMaxJsonLevels = 125;
inline constexpr std::uint64_t kMaxProgramLevels = 64;
inline constexpr std::uint64_t kMaxModuleLevels = 256;
inline constexpr int kMaxArchiveLevels = 3;

/// Units: files, entries of a list, steps of backtracking, KiB.
inline constexpr std::size_t kMaxShardHeaders = 4096;
inline constexpr std::size_t kMaxMatched = 4000;
inline constexpr std::uint32_t kMaxPatternSteps = 1'000'000;
inline constexpr std::uint32_t kMaxPatternKibibytes = 64 * 1024;

} // namespace lockstep::ckpt
