// SPDX-License-Identifier: BSD-3-Clause
//
// An `Error` of Lockstep as an exception of Python: lockstep.LockstepError or
// the subclass of its code, with all fields of the error.
//   const auto file = take(ckpt::load(path));   // throws into Python
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>

#include "lockstep/base/error.h"

namespace lockstep::python {

/// Throws nanobind::python_error. The caller holds the GIL.
[[noreturn]] void raise_python(const Error& error);

/// The value of a result. `path`: the file, for errors that do not name one.
/// Errors: as `raise_python`.
template <class T>
T take(Result<T> result, const std::string& path = {}) {
  if (!result) {
    if (result.error().path.empty()) {
      result.error().path = path;
    }
    raise_python(result.error());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

/// Exceptions of the library that reach a binding become Python's.
void register_translator();

} // namespace lockstep::python
