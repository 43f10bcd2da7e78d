// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/log_file.h"

namespace lockstep::train {

LogFile::LogFile(FileSystem& fs, const std::string& path)
    : file_(fs.append(path).value()) {}

void LogFile::write(LogLevel level, std::string_view message) {
  if (level == LogLevel::kDebug) {
    return;
  }
  std::string line = level == LogLevel::kWarning ? "warning: "
                     : level == LogLevel::kError ? "error: "
                                                 : "";
  line += message;
  line += '\n';
  const std::lock_guard lock(mutex_);
  file_->write(as_byte_span(line)).value();
}

} // namespace lockstep::train
