// SPDX-License-Identifier: BSD-3-Clause
//
// The texts of --help.
#pragma once

#include <string>

#include "cli/command_docs.h"

namespace lockstep::cli {

/// `lockstep --help`: the commands of the top level.
std::string program_help();

/// `lockstep ckpt --help`: the commands of the group.
std::string ckpt_help();

/// `lockstep ckpt ls --help`: arguments, flags, examples.
std::string command_help(const CommandDoc& command);

} // namespace lockstep::cli
