// SPDX-License-Identifier: BSD-3-Clause
//
// What scan, verify and digest say, as dicts of Python; lockstep/_tools.py
// makes classes of them.
#pragma once

#include <nanobind/nanobind.h>

namespace lockstep::python {

void register_reports(nanobind::module_& module);

} // namespace lockstep::python
