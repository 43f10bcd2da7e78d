// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "cli/doctor.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

struct Vectors {
  // As /proc/cpuinfo spells it.
  std::string_view flag = {};
  std::string_view name = {};
};

constexpr std::array kVectors{
    Vectors{"avx2", "AVX2"},
    Vectors{"fma", "FMA"},
    Vectors{"avx512f", "AVX-512"},
    Vectors{"avx512_bf16", "AVX-512 bfloat16"},
    Vectors{"amx_bf16", "AMX bfloat16"},
    Vectors{"asimd", "NEON"},
    Vectors{"sve", "SVE"},
};

Finding vectors_of(const std::string& text) {
  std::string flags = cpu_fact(text, "flags");
  if (flags.empty()) {
    flags = cpu_fact(text, "Features"); // of ARM
  }
  const std::vector<std::string> words = split(flags, ' ');
  std::vector<std::string> names;
  for (const Vectors& row : kVectors) {
    if (std::ranges::find(words, row.flag) != words.end()) {
      names.emplace_back(row.name);
    }
  }
  Finding finding{
      .group = "processor",
      .name = "vectors",
      .value = names.empty() ? "none that Lockstep knows" : join(names, ", ")};
  const bool has_avx2 = std::ranges::find(words, "avx2") != words.end() &&
                        std::ranges::find(words, "fma") != words.end();
  if (!has_avx2) {
    finding.health = Health::kNote;
    finding.remedy =
        "Lockstep's kernels are made for AVX2 and AVX-512: without them "
        "'--kernels torch' may be as fast";
  }
  return finding;
}

// Cores that a container may use at a time; nothing where it has all.
std::optional<double> core_share(const DoctorPlaces& places) {
  std::optional<double> share;
  for (const std::string& line : group_limits(places, "cpu.max")) {
    const std::vector<std::string> parts = split(line, ' ');
    const auto quota = parse_number<double>(parts.front()); // not "max"
    const auto period = parse_number<double>(parts.back());
    if (quota && period && *period > 0) {
      share = std::min(share.value_or(*quota / *period), *quota / *period);
    }
  }
  return share;
}

Finding cores_of(const DoctorPlaces& places, int cores) {
  const auto all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  Finding finding{
      .group = "processor",
      .name = "cores",
      .value =
          cores == all ? format("{}", all) : format("{} of {}", cores, all)};
  const std::optional<double> share = core_share(places);
  if (!share || *share >= cores) {
    return finding;
  }
  finding.value +=
      format(", of which this container gets the time of {:.1f}", *share);
  const int threads = std::max(1, static_cast<int>(std::floor(*share)));
  const auto given = parse_number<int>(environment_text("OMP_NUM_THREADS"));
  if (!given || *given > threads) {
    finding.health = Health::kWarning;
    finding.remedy = format(
        "more threads than that are stopped in turn: OMP_NUM_THREADS={0}, or "
        "'lockstep train --threads {0}'",
        threads);
  }
  return finding;
}

Finding load_of(const DoctorPlaces& places, int cores) {
  const std::string text =
      split(system_line(places, "/proc/loadavg"), ' ').front();
  Finding finding{
      .group = "processor",
      .name = "load",
      .value = text.empty() ? "unknown" : text};
  constexpr double kBusy = 0.5; // of the cores
  if (parse_number<double>(text).value_or(0) > kBusy * cores) {
    finding.health = Health::kNote;
    finding.remedy =
        "other programs are running: times that are measured now say little";
  }
  return finding;
}

} // namespace

Findings examine_processor(const DoctorPlaces& places) {
  const std::string text = system_text(places, "/proc/cpuinfo");
  const std::string model = cpu_fact(text, "model name");
  const int cores = usable_cores();
  return {
      {.group = "processor",
       .name = "model",
       .value = model.empty() ? "unknown" : model},
      vectors_of(text),
      cores_of(places, cores),
      load_of(places, cores)};
}

} // namespace lockstep::cli
