// SPDX-License-Identifier: BSD-3-Clause
//
// What the oracle runs: each case is plain data, so Python gets the same table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::test {

/// One optimizer with two groups and, perhaps, a scheduler.
struct OracleCase {
  std::string name = {};
  /// Python's classes; an empty scheduler is none.
  std::string optimizer = {};
  std::string scheduler = {};
  /// Options of the two groups, by Python's names.
  std::vector<NamedOption> first = {};
  std::vector<NamedOption> second = {};
  /// Arguments of the scheduler, by Python's names.
  ckpt::Value schedule = {};
};

/// All optimizer variants, and all schedulers on two of them.
const std::vector<OracleCase>& oracle_cases();
/// The table for Python.
ckpt::Value cases_value(const std::vector<OracleCase>& cases);

std::unique_ptr<Optimizer> make_case_optimizer(
    const OracleCase& test_case,
    const std::vector<at::Tensor>& params);
/// Null if the case has none.
std::shared_ptr<Scheduler> make_case_scheduler(
    const OracleCase& test_case,
    Optimizer& optimizer);

} // namespace lockstep::test
