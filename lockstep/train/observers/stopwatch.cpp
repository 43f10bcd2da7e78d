// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/stopwatch.h"

#include <sys/resource.h>

#include <array>

#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

double to_seconds(const ::timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

/// Since the process began; `wall` stays 0.
Times processor_times() {
  ::rusage usage = {};
  static_cast<void>(::getrusage(RUSAGE_SELF, &usage));
  return {
      .user = to_seconds(usage.ru_utime),
      .system = to_seconds(usage.ru_stime)};
}

} // namespace

Stopwatch::Stopwatch()
    : start_(std::chrono::steady_clock::now()), cpu_start_(processor_times()) {}

double Stopwatch::seconds() const {
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - start_).count();
}

Times Stopwatch::times() const {
  const Times now = processor_times();
  return {
      .wall = seconds(),
      .user = now.user - cpu_start_.user,
      .system = now.system - cpu_start_.system};
}

Times of_all_ranks(const Times& own, const dist::ProcessGroup& group) {
  std::array<double, 2> processor{own.user, own.system};
  group.sum(processor);
  return {.wall = own.wall, .user = processor[0], .system = processor[1]};
}

std::string to_string(const Times& times) {
  return format(
      "{} (user {}, system {})",
      human_seconds(times.wall),
      human_seconds(times.user),
      human_seconds(times.system));
}

} // namespace lockstep::train
