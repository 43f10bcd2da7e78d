// SPDX-License-Identifier: BSD-3-Clause
//
// Names that run code, load code or reach the system when a pickle asks for
// them: one table, by modules.
//   is_dangerous_path("os.system")           // true: all of `os` is
#pragma once

#include <string_view>

namespace lockstep::ckpt {

/// True if `path`, "module.name" in Python 3's spelling, is in the table or
/// below a row of it; "module:dotted.name" as well.
bool is_dangerous_path(std::string_view path);

} // namespace lockstep::ckpt
