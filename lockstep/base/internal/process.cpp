// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/process.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <fstream>

#include "lockstep/base/strings.h"

namespace lockstep {

Descriptor process_handle(pid_t pid) {
  // glibc 2.36 declares pidfd_open for C alone.
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Descriptor memory_file(const char* name) {
  return Descriptor(::memfd_create(name, MFD_CLOEXEC));
}

std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat processes = {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &processes) != 0) {
    return {};
  }
  return format("{}/{}", boot, static_cast<std::uint64_t>(processes.st_ino));
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  static_cast<void>(::gethostname(name.data(), HOST_NAME_MAX));
  return name.data();
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) {
    return CPU_COUNT(&cores);
  }
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string cpu_fact(const std::string& text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    const auto colon = line.find(": ");
    if (line.starts_with(name) && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

} // namespace lockstep
