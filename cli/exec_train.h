// SPDX-License-Identifier: BSD-3-Clause
//
// Commands that need LibTorch live in `lockstep-train`; this program hands
// over to it before anything else is done, as git does with its commands.
#pragma once

#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::cli {

/// True for `train`, `bench`, `doctor` and `summary`.
bool is_train_command(std::string_view name);

/// Replaces this process by `lockstep-train` with the same arguments. Looked
/// for beside this program, in `../libexec`, then in PATH.
/// Errors: returns kUnavailable if it is not there; does not return otherwise.
Error exec_train(char** argv);

} // namespace lockstep::cli
