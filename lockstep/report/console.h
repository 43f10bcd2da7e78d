// SPDX-License-Identifier: BSD-3-Clause
//
// One screen shared by log lines and a status line at its bottom: a log line
// takes the status away, prints, and puts it back.
//   Console console(STDERR_FILENO);
//   console.set_status("32/938 ...");
//   console.print("warning: ...");
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "lockstep/report/terminal.h"

namespace lockstep::report {

/// Threads: safe to call from several threads.
class Console {
 public:
  /// Ownership: `screen` must outlive the console.
  explicit Console(Screen& screen);
  /// Prints to an open descriptor.
  explicit Console(int descriptor);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  /// Leaves the cursor at the start of an empty line.
  ~Console();

  [[nodiscard]] TerminalTraits traits() const {
    return screen_.traits();
  }
  [[nodiscard]] int width() const {
    return screen_.width();
  }
  /// Prints a line (or several) above the status line.
  void print(std::string_view text);
  /// Replaces the status line, or takes it away if `status` is empty; it must
  /// fit into `width() - 1` columns. Only where `traits().animated`; elsewhere
  /// nothing happens.
  void set_status(std::string status);
  /// Leaves the status line where it is as an ordinary line.
  void keep_status();

 private:
  [[nodiscard]] std::string to_status_start() const;

  std::unique_ptr<Screen> own_screen_;
  Screen& screen_;
  std::mutex mutex_;
  std::string status_;
};

} // namespace lockstep::report
