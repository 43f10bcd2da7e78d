// SPDX-License-Identifier: BSD-3-Clause
//
// Texts of the library in the words of the command line: it names options of
// functions, the program has flags.
#pragma once

#include <string>

namespace lockstep::cli {

/// `text` with flags: "Limits::max_nodes allows more" becomes
/// "--max-nodes allows more".
std::string in_flags(std::string text);

} // namespace lockstep::cli
