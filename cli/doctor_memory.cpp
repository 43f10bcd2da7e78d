// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cli/doctor.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

// Units: bytes; 0 if /proc/meminfo has no such line.
std::uint64_t memory_fact(const DoctorPlaces& places, std::string_view name) {
  for (const std::string& line :
       split(system_text(places, "/proc/meminfo"), '\n')) {
    if (!line.starts_with(name)) {
      continue;
    }
    const std::size_t from = line.find_first_of("0123456789");
    if (from == std::string::npos) {
      return 0;
    }
    const std::size_t to = line.find_first_not_of("0123456789", from);
    constexpr std::uint64_t kKiB = 1024;
    return kKiB * parse_number<std::uint64_t>(
                      std::string_view(line).substr(from, to - from))
                      .value_or(0);
  }
  return 0;
}

Finding main_memory(const DoctorPlaces& places) {
  const std::uint64_t total = memory_fact(places, "MemTotal:");
  const std::uint64_t free = memory_fact(places, "MemAvailable:");
  Finding finding{
      .group = "memory",
      .name = "main",
      .value = format("{}, {} free", human_bytes(total), human_bytes(free))};
  constexpr std::uint64_t kLittle = 1024 * kMiB;
  if (free < kLittle) {
    finding.health = Health::kWarning;
    finding.remedy = "close other programs, or '--batch-size' smaller";
  }
  return finding;
}

// Of a container; no finding where there is none.
Findings memory_limit(const DoctorPlaces& places) {
  const std::uint64_t all = memory_fact(places, "MemTotal:");
  std::uint64_t limit = all;
  for (const std::string& line : group_limits(places, "memory.max")) {
    limit = std::min(limit, parse_number<std::uint64_t>(line).value_or(all));
  }
  if (limit == all) {
    return {};
  }
  return {
      {.group = "memory",
       .name = "limit",
       .value = format("{} for this container", human_bytes(limit)),
       .health = Health::kNote,
       .remedy = "a process that takes more is killed (status 137)"}};
}

Finding shared_memory(const DoctorPlaces& places) {
  struct statvfs room {};
  const std::string path = places.root + "/dev/shm";
  if (::statvfs(path.c_str(), &room) != 0) {
    return {
        .group = "memory",
        .name = "/dev/shm",
        .value = "missing",
        .health = Health::kNote,
        .remedy =
            "NCCL needs it between GPUs of one machine; Lockstep does "
            "without"};
  }
  const std::uint64_t free =
      static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  Finding finding{
      .group = "memory",
      .name = "/dev/shm",
      .value = format("{} free", human_bytes(free))};
  constexpr std::uint64_t kContainersDefault = 64 * kMiB; // Docker's
  if (free <= kContainersDefault) {
    finding.health = Health::kNote;
    finding.remedy =
        "NCCL and Python's data loaders need more: 'docker run --shm-size=1g', "
        "or '--ipc=host'; Lockstep's own ranks do without";
  }
  return finding;
}

Finding open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const bool is_endless = limit.rlim_cur == RLIM_INFINITY;
  Finding finding{
      .group = "memory",
      .name = "open files",
      .value = is_endless ? "no limit"
                          : format("at most {}", with_commas(limit.rlim_cur))};
  constexpr rlim_t kFew = 1024;
  if (!is_endless && limit.rlim_cur < kFew) {
    finding.health = Health::kWarning;
    finding.remedy =
        "many ranks and sharded checkpoints need more: 'ulimit -n 4096'";
  }
  return finding;
}

} // namespace

Findings examine_memory(const DoctorPlaces& places) {
  Findings findings{main_memory(places)};
  for (Finding& limit : memory_limit(places)) {
    findings.push_back(std::move(limit));
  }
  findings.push_back(shared_memory(places));
  findings.push_back(open_files());
  return findings;
}

} // namespace lockstep::cli
