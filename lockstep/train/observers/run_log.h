// SPDX-License-Identifier: BSD-3-Clause
//
// `log.txt`: what a run says, kept beside what the terminal shows.
#pragma once

#include <string_view>

#include "lockstep/base/log_sink.h"
#include "lockstep/train/checkpoints/run_files.h"

namespace lockstep::train {

/// Writes each line, behind "warning: " or "error: " if it is one; debug
/// messages are left out. The lines of a `LineObserver` are rows, so that a run
/// that goes on repeats none; messages stay. Threads: any.
class RunLog final : public LogSink {
 public:
  /// Opens `path`. Ownership: `files` must outlive the log.
  /// Errors: throws kIo.
  RunLog(RunFiles& files, const std::string& path);

  void write(LogLevel level, std::string_view message) override;

 private:
  RunFile& file_;
};

} // namespace lockstep::train
