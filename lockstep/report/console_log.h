// SPDX-License-Identifier: BSD-3-Clause
//
// Log lines on the console, above a progress line, and in a file.
//   Console console(STDERR_FILENO);
//   auto log = ConsoleLog::open(console, {.file = "runs/x/log.txt"}).value();
//   log->write(LogLevel::kWarning, "disk is nearly full");
#pragma once

#include <memory>
#include <mutex>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/report/console.h"

namespace lockstep::report {

/// Where log lines go.
struct ConsoleLogOptions {
  /// Appended to; empty for none. Gets every line from `kInfo` on, in the words
  /// of the console and without colours.
  std::string file = {};
  /// Lines below this level are not shown on the console.
  LogLevel console_level = LogLevel::kInfo;
};

/// Threads: safe to call from several threads.
class ConsoleLog final : public LogSink {
 public:
  /// `file` may be null. Ownership: `console` must outlive the log.
  ConsoleLog(
      Console& console,
      LogLevel console_level,
      std::unique_ptr<WritableFile> file);

  /// Ownership: `console` and `fs` must outlive the log.
  /// Errors: those of `FileSystem::append`.
  static Result<std::unique_ptr<ConsoleLog>> open(
      Console& console,
      const ConsoleLogOptions& options = {},
      FileSystem& fs = real_fs());

  void write(LogLevel level, std::string_view message) override;

 private:
  Console& console_;
  LogLevel console_level_;
  std::mutex mutex_;
  std::unique_ptr<WritableFile> file_;
};

} // namespace lockstep::report
