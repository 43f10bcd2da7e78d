// SPDX-License-Identifier: BSD-3-Clause
//
// How Python's side asks for a file.
#pragma once

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::python {

/// Of the dict that `_reading` of lockstep/_files.py makes.
ckpt::LoadOptions load_options(const nanobind::dict& how);

/// Names of the limits: "max_depth".
nanobind::list limit_names();

} // namespace lockstep::python
