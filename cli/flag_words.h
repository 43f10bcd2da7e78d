// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of the library in the words of the command line: it names options of
// functions, the program has flags.
#pragma once

#include "lockstep/base/error.h"

namespace lockstep::cli {

/// `error`, its hint with flags: "Limits::max_nodes allows more" becomes
/// "--max-nodes allows more".
Error in_flags(Error error);

} // namespace lockstep::cli
