// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/doctor.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {

std::string system_text(const DoctorPlaces& places, std::string_view path) {
  std::ifstream file(places.root + std::string(path), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string system_line(const DoctorPlaces& places, std::string_view path) {
  return split(system_text(places, path), '\n').front();
}

std::vector<std::string> group_limits(
    const DoctorPlaces& places,
    std::string_view file) {
  constexpr std::string_view kVersion2 = "0::";
  constexpr std::string_view kFolder = "/sys/fs/cgroup";
  std::vector<std::string> found;
  for (const std::string& line :
       split(system_text(places, "/proc/self/cgroup"), '\n')) {
    if (!line.starts_with(kVersion2)) {
      continue;
    }
    std::filesystem::path group = line.substr(kVersion2.size());
    while (true) {
      const std::string text =
          system_line(places, format("{}{}/{}", kFolder, group.string(), file));
      if (!text.empty()) {
        found.push_back(text);
      }
      if (!group.has_relative_path()) {
        break;
      }
      group = group.parent_path();
    }
  }
  return found;
}

std::string environment_text(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

} // namespace lockstep::cli
