// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank prints, line by line: as it is into its log file, and with the
// rank in front to the console.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/launch/internal/console.h"

namespace lockstep::launch {

/// Copies from a pipe, no faster than the console takes it: a rank that prints
/// more waits, as it would for a terminal. Lines of two ranks do not run into
/// each other.
class OutputCopy {
 public:
  /// `source`: the end to read from, which does not block. `console` must
  /// outlive it. `prefix`: "[default0]:".
  OutputCopy(
      Descriptor source,
      Descriptor file,
      Console& console,
      std::string prefix);

  /// To poll for POLLIN; -1 while the console has to catch up.
  [[nodiscard]] int descriptor() const {
    return console_->is_behind() ? -1 : source_.get();
  }
  /// Copies what is there until the console is behind. False once there is
  /// nothing more to come.
  bool copy();
  /// Copies all that is there now; the console keeps it. Ends a last line that
  /// has no line feed.
  void finish();

 private:
  ssize_t copy_once();
  void print(std::string_view text);

  Descriptor source_;
  Descriptor file_;
  Console* console_;
  std::string prefix_;
  std::string line_;
};

} // namespace lockstep::launch
