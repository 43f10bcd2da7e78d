// SPDX-License-Identifier: BSD-3-Clause
//
// The schedules that are compared with Python's, as plain data.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::test {

struct ScheduleCase {
  std::string name = {};
  /// Python's class.
  std::string optimizer = "SGD";
  /// LibTorch's optimizer instead of ours.
  bool is_torchs = false;
  /// Options of each group.
  std::vector<std::vector<NamedOption>> groups = {};
  /// For `make_schedule`.
  ckpt::Value schedule = {};
  /// Units: steps, in all and until the state is saved.
  std::int64_t steps = 0;
  std::int64_t middle = 0;
  /// What `step` is given each time: metrics, epochs; None and where there are
  /// no more: nothing.
  std::vector<ckpt::Value> arguments = {};
};

/// Every scheduler with its options, each on one group and on two.
const std::vector<ScheduleCase>& schedule_cases();
/// Arguments that Python refuses, or that end in an error after `steps`.
const std::vector<ScheduleCase>& refused_cases();
/// A list for Python.
ckpt::Value table_value(const std::vector<ScheduleCase>& cases);

} // namespace lockstep::test
