// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank leaves for its launcher when it fails: the file that torchrun
// names in TORCHELASTIC_ERROR_FILE and shows as the root cause.
//   int main() {
//     launch::install_error_file();   // init_process_group does it, too
//     try { ... } catch (const std::exception& error) {
//       launch::write_error_file(error);
//       return 1;
//     }
//   }
#pragma once

#include <exception>

#pragma GCC visibility push(default)
namespace lockstep::launch {

/// Name of the file in a rank's folder, as torchrun's.
inline constexpr const char* kErrorFile = "error.json";

/// From now on an exception that nobody catches and a fatal signal (SIGSEGV,
/// SIGBUS, SIGFPE, SIGILL, SIGABRT) write the file, with the stack, before the
/// program ends as it would have. Signals that somebody handles already are
/// left alone. Does nothing without the variable, and when called again.
/// Threads: call it before others are started; stack overflows are caught in
/// the calling thread only.
void install_error_file();

/// For an exception that is caught where the program ends. The first error of
/// a process counts; without the variable nothing is written. One that only
/// says that another rank is gone is marked so, and dated a second later, as
/// the launcher shows the earliest.
void write_error_file(const std::exception& error);

} // namespace lockstep::launch
#pragma GCC visibility pop
