// SPDX-License-Identifier: BSD-3-Clause
//
// `log.txt` of a run folder: every message as a line, from all starts of a run.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/base/log_sink.h"

namespace lockstep::train {

/// Appends messages to a file. Errors: throws kIo.
class LogFile : public LogSink {
 public:
  LogFile(FileSystem& fs, const std::string& path);

  void write(LogLevel level, std::string_view message) override;

 private:
  std::mutex mutex_;
  std::unique_ptr<WritableFile> file_;
};

} // namespace lockstep::train
