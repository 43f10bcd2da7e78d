// SPDX-License-Identifier: BSD-3-Clause
//
// Schedulers by Python's names and arguments, as plain data, so that Python
// makes the same ones.
#pragma once

#include <memory>
#include <string_view>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::test {

/// Python's class `kind` with keyword arguments `args`. Functions are named as
/// in tests/oracle/optim_schedules.py.
std::shared_ptr<Scheduler> make_schedule(
    std::string_view kind,
    const ckpt::Value& args,
    const OptimizerRef& optimizer);

/// The same of {"kind", "args", "schedulers"}: the last are those in it.
std::shared_ptr<Scheduler> make_schedule(
    const ckpt::Value& schedule,
    const OptimizerRef& optimizer);

/// A step with what Python's is given: a metric, an epoch, or None for nothing.
void step_schedule(Scheduler& scheduler, const ckpt::Value& argument);

} // namespace lockstep::test
