// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep doctor` finds: one function for each group of findings, all
// called by doctor.cpp in the order in which they are printed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// How bad a finding is.
enum class Health : std::uint8_t {
  kOk,
  /// Worth knowing; nothing is wrong.
  kNote,
  /// Slower than it need be, or a trap.
  kWarning,
  /// Something that a user would start here fails.
  kProblem,
};

/// Names of `Health`, in its order.
inline constexpr std::array<std::string_view, 4> kHealthNames{
    "ok",
    "note",
    "warning",
    "problem"};

/// One thing that was looked at.
struct Finding {
  /// "processor", "memory": the function that found it.
  std::string group = {};
  std::string name = {};
  /// What was found, for people.
  std::string value = {};
  Health health = Health::kOk;
  /// What to do about it; empty where there is nothing to do.
  std::string remedy = {};
};
using Findings = std::vector<Finding>;

/// Units: bytes.
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// Where the doctor looks.
struct DoctorPlaces {
  /// In front of /proc, /sys and /dev: tests put files of another machine
  /// there.
  std::string root = {};
  /// Folder whose disk is measured, where runs would be written.
  std::string folder = ".";
};

/// Vectors, cores, a container's share of them, other programs' load.
Findings examine_processor(const DoctorPlaces& places);
/// Memory, a container's limit, shared memory, open files.
Findings examine_memory(const DoctorPlaces& places);
/// Free space, kind of file system, time of fsync, locks. Writes a file of a
/// few MiB and removes it.
Findings examine_disk(const DoctorPlaces& places);
/// lockstep-train, its LibTorch and its GPUs, as `lockstep-train --facts` tells
/// them; the NVIDIA driver beside them. May take seconds.
Findings examine_torch(const DoctorPlaces& places);
/// Network interfaces, the port at which ranks meet, the launcher's variables.
Findings examine_network(const DoctorPlaces& places);

/// A file of /proc or /sys, whatever its size says; empty if there is none.
std::string system_text(const DoctorPlaces& places, std::string_view path);
/// Its first line.
std::string system_line(const DoctorPlaces& places, std::string_view path);

/// What the control groups (version 2) of this process and those around them
/// say in `file`: {"max 100000", "200000 100000"} of "cpu.max".
std::vector<std::string> group_limits(
    const DoctorPlaces& places,
    std::string_view file);

/// A variable of the environment; empty if it is not set.
std::string environment_text(const char* name);

} // namespace lockstep::cli
