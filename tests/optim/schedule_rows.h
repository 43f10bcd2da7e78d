// SPDX-License-Identifier: BSD-3-Clause
//
// The schedules of schedule_cases.h, without optimizers.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::test {

/// A schedule of the table, and how long it runs: at least three periods.
struct ScheduleRow {
  std::string name = {};
  ckpt::Value schedule = {};
  std::int64_t steps = 0;
  std::vector<ckpt::Value> arguments = {};
};

/// Python's class with keyword arguments.
ckpt::Value schedule(const char* kind, std::initializer_list<ckpt::Item> args);
/// CosineAnnealingWarmRestarts.
ckpt::Value restarts(std::initializer_list<ckpt::Item> args);
/// CyclicLR and ReduceLROnPlateau with these beside short standard arguments.
ckpt::Value cyclic(std::initializer_list<ckpt::Item> more);
ckpt::Value plateau(std::initializer_list<ckpt::Item> more);
/// SequentialLR or ChainedScheduler.
ckpt::Value composed(
    const char* kind,
    std::vector<ckpt::Value> schedulers,
    std::initializer_list<ckpt::Value> milestones = {});

std::vector<ScheduleRow> simple_rows();
std::vector<ScheduleRow> restart_rows();
std::vector<ScheduleRow> cyclic_rows();
std::vector<ScheduleRow> plateau_rows();
std::vector<ScheduleRow> composed_rows();
/// All of these.
std::vector<ScheduleRow> all_schedule_rows();

} // namespace lockstep::test
