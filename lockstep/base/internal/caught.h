// SPDX-License-Identifier: BSD-3-Clause
//
// Exceptions that become errors: of several files, one that makes a function
// throw must not stop the others.
//   auto report = caught("ckpt.verify", [&] { return verify(path); });
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

#include "lockstep/base/error.h"

namespace lockstep {

/// What `exception` says: the error of an `Exception`; kIo if memory ran out;
/// kInternal, with `op`, for any other.
Error error_of(const std::exception& exception, std::string_view op);

/// What `f` returns, a `Result` or `Status`, or the error of what it throws.
template <class F>
std::invoke_result_t<F> caught(std::string_view op, const F& f) {
  try {
    return f();
  } catch (const std::exception& exception) {
    return error_of(exception, op);
  }
}

} // namespace lockstep
