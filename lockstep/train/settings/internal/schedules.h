// SPDX-License-Identifier: BSD-3-Clause
//
// The schedules of `--lr-scheduler`: one row each.
//   if (schedule_row(config.lr_scheduler).has_metric) { ... }
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::train {

struct ScheduleRow {
  std::string_view name = {};
  /// It steps after each update, not after each epoch.
  bool is_of_steps = false;
  /// It is planned for the length of a run.
  bool is_planned = false;
  /// Its steps take the number that chooses the best epoch.
  bool has_metric = false;
  /// Of `kScheduleFlags`.
  std::array<std::string_view, 3> flags = {};

  [[nodiscard]] constexpr bool takes(std::string_view flag) const {
    return std::ranges::find(flags, flag) != flags.end();
  }
};

inline constexpr std::array kSchedules{
    ScheduleRow{.name = "constant"},
    ScheduleRow{.name = "steplr", .flags = {"lr-step-size", "lr-gamma"}},
    ScheduleRow{.name = "multisteplr", .flags = {"lr-milestones", "lr-gamma"}},
    ScheduleRow{
        .name = "cosineannealinglr",
        .is_planned = true,
        .flags = {"min-lr"}},
    ScheduleRow{.name = "onecyclelr", .is_of_steps = true, .is_planned = true},
    ScheduleRow{
        .name = "reducelronplateau",
        .has_metric = true,
        .flags = {"lr-gamma", "lr-patience", "min-lr"}},
};

/// The flags that some schedules take.
inline constexpr std::array<std::string_view, 5> kScheduleFlags{
    "lr-step-size",
    "lr-gamma",
    "lr-milestones",
    "lr-patience",
    "min-lr"};

/// A row without a name for a schedule of a program's own.
constexpr ScheduleRow schedule_row(std::string_view name) {
  const auto* const found =
      std::ranges::find(kSchedules, name, &ScheduleRow::name);
  return found == kSchedules.end() ? ScheduleRow() : *found;
}

} // namespace lockstep::train
