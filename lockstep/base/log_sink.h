// SPDX-License-Identifier: BSD-3-Clause
//
// Where messages of a run go. Libraries do not print: whoever needs to say
// something takes a `LogSink&`; a trainer's `console_log()` is the terminal's.
#pragma once

#include <string_view>

#pragma GCC visibility push(default)
namespace lockstep {

/// How much a message matters.
enum class LogLevel {
  /// Only with --verbose.
  kDebug,
  /// What the program does.
  kInfo,
  /// The run goes on, but somebody should look.
  kWarning,
  /// Something was not done.
  kError,
};

/// Takes messages. Threads: `write` may be called from several threads.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// `message` is one or more lines of UTF-8 without a final line break.
  virtual void write(LogLevel level, std::string_view message) = 0;
};

} // namespace lockstep
#pragma GCC visibility pop
