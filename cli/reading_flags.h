// SPDX-License-Identifier: BSD-3-Clause
//
// Flags of every command that reads a checkpoint: bounds on what a file may
// ask for, and what to do about oddities. Made from the table of limits.
#pragma once

#include "cli/command.h"

namespace lockstep::cli {

/// Declares --strict, --lenient, --allow-expand and one flag for each limit,
/// unless the command has a flag of that name.
void add_reading_flags(CLI::App& app, Common& common);

/// To be called when the arguments are parsed.
void apply_reading_flags(Common& common);

} // namespace lockstep::cli
