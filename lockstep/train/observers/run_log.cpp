// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/run_log.h"

#include <string>

#include "lockstep/base/strings.h"
#include "lockstep/train/observers/line_observer.h"

namespace lockstep::train {

RunLog::RunLog(RunFiles& files, const std::string& path)
    : file_(files.open(path, /*header=*/{}, is_observed_line)) {}

void RunLog::write(LogLevel level, std::string_view message) {
  if (level == LogLevel::kDebug) {
    return;
  }
  const std::string_view prefix = level == LogLevel::kWarning ? "warning: "
                                  : level == LogLevel::kError ? "error: "
                                                              : "";
  for (const std::string& line : split(message, '\n')) {
    if (level == LogLevel::kInfo && is_observed_line(line)) {
      file_.append(line);
    } else {
      file_.note(format("{}{}", prefix, line));
    }
  }
}

} // namespace lockstep::train
