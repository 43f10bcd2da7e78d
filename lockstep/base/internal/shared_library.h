// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of libraries that a program finds while it runs. Inline: a static
// program that asks for none has no use for a loader.
#pragma once

#include <dlfcn.h>

#include <string>

namespace lockstep {

/// Why the loader's last call in this thread failed.
inline std::string loader_error() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps the text per thread
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

/// Sets `function` to that of `library` (of dlopen) with this name, or to null.
/// Returns whether there is one.
template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

} // namespace lockstep
