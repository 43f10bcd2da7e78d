// SPDX-License-Identifier: BSD-3-Clause
//
// Operators that take sizes for granted which a net's layers check before they
// call them: a file calls them directly, so that they are checked here.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

namespace lockstep::program {

/// Looks at the arguments of a call. Errors: throws c10::Error.
using CheckArguments = void (*)(const torch::jit::Stack& stack);

/// Null for an operator that checks what it is given.
CheckArguments find_check(const c10::FunctionSchema& schema);

} // namespace lockstep::program
