// SPDX-License-Identifier: BSD-3-Clause
//
// Commands that need LibTorch live in `lockstep-train`; this program hands
// over to it, as git does with its commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::cli {

/// True for the names in `train::kTrainCommands`.
bool is_train_command(std::string_view name);

/// The program that `exec_train` would start; empty if it finds none.
std::string train_program();

/// Replaces this process by `lockstep-train` with these arguments. Looked for
/// beside this program, in `../libexec`, then in PATH.
/// Errors: returns kUnavailable if it is not there; does not return otherwise.
Error exec_train(const std::vector<std::string>& args);

} // namespace lockstep::cli
