// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/console_log.h"

#include <array>
#include <utility>

namespace lockstep::report {
namespace {

struct LevelLook {
  std::string_view prefix = {};
  std::string_view colour = {};
};

// In the order of `LogLevel`.
constexpr std::array kLooks{
    LevelLook{.prefix = "debug: ", .colour = "\x1b[2m"},
    LevelLook{},
    LevelLook{.prefix = "warning: ", .colour = "\x1b[33m"},
    LevelLook{.prefix = "error: ", .colour = "\x1b[31m"},
};

std::string line_of(LogLevel level, std::string_view message, bool colour) {
  const LevelLook look = kLooks.at(static_cast<std::size_t>(level));
  std::string line;
  if (colour && !look.colour.empty()) {
    line.append(look.colour).append(look.prefix).append("\x1b[0m");
  } else {
    line.append(look.prefix);
  }
  return line.append(message);
}

} // namespace

ConsoleLog::ConsoleLog(
    Console& console,
    LogLevel console_level,
    std::unique_ptr<WritableFile> file)
    : console_(console),
      console_level_(console_level),
      file_(std::move(file)) {}

Result<std::unique_ptr<ConsoleLog>> ConsoleLog::open(
    Console& console,
    const ConsoleLogOptions& options,
    FileSystem& fs) {
  std::unique_ptr<WritableFile> file;
  if (!options.file.empty()) {
    LOCKSTEP_ASSIGN(file, fs.append(options.file));
  }
  return std::make_unique<ConsoleLog>(
      console,
      options.console_level,
      std::move(file));
}

void ConsoleLog::write(LogLevel level, std::string_view message) {
  if (level >= console_level_) {
    console_.print(line_of(level, message, console_.traits().colour));
  }
  const std::scoped_lock lock(mutex_);
  if (!file_ || level < LogLevel::kInfo) {
    return;
  }
  const Status status =
      file_->write(as_byte_span(line_of(level, message, false) + "\n"));
  if (!status) {
    file_.reset(); // say it once and go on: a log must not stop a run
    console_.print(line_of(
        LogLevel::kWarning,
        "no more lines in the log file: " + to_string(status.error()),
        console_.traits().colour));
  }
}

} // namespace lockstep::report
