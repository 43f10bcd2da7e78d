// SPDX-License-Identifier: BSD-3-Clause
//
// What `diff --map` would make equal.
//   map_hint(rows);                         // "module.="
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/inspect.h"

namespace lockstep::ckpt::internal {

/// The `--map` under which all names of one side are those of the other, "" if
/// there is none.
std::string map_hint(const std::vector<DiffRow>& rows);

} // namespace lockstep::ckpt::internal
