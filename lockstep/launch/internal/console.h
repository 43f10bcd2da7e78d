// SPDX-License-Identifier: BSD-3-Clause
//
// Standard output or error of a program that must not wait for whoever reads
// it: a pager that shows its first page, a terminal after Ctrl-S.
//   Console console(STDERR_FILENO);
//   console.write("rank 1 failed\n");
//   if (console.is_behind()) { ... poll(console.descriptor()) ... }
//   console.flush();
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/internal/descriptor.h"

namespace lockstep::launch {

/// Threads: one at a time.
class Console {
 public:
  /// `number`: 1 or 2, not closed, and left as it is: others share it.
  explicit Console(int number);

  /// Keeps what is not taken now. What cannot be written at all is dropped: a
  /// full disk or a reader that is gone ends no training.
  void write(std::string_view text);
  /// Writes what is taken now of what was kept.
  void flush();
  /// Whether something is kept.
  [[nodiscard]] bool is_behind() const {
    return !kept_.empty();
  }
  /// To poll for POLLOUT.
  [[nodiscard]] int descriptor() const {
    return own_ ? own_.get() : number_;
  }

 private:
  int number_ = 1;
  /// The same pipe or terminal, opened so that writing does not wait.
  Descriptor own_;
  std::string kept_;
};

/// What the launcher and its ranks print to.
struct Consoles {
  Console out{1};
  Console err{2};

  [[nodiscard]] bool is_behind() const {
    return out.is_behind() || err.is_behind();
  }
  void flush() {
    out.flush();
    err.flush();
  }
};

} // namespace lockstep::launch
