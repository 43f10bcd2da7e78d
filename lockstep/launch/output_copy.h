// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank prints, line by line: as it is into its log file, and with the
// rank in front to the console.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/launch/rank_process.h"

namespace lockstep::launch {

/// Copies from a pipe. Lines of two ranks do not run into each other.
class OutputCopy {
 public:
  /// `source`: the end to read from, which does not block. `console`: 1 or 2,
  /// not closed. `prefix`: "[default0]:".
  OutputCopy(
      Descriptor source,
      Descriptor file,
      int console,
      std::string prefix);

  [[nodiscard]] int descriptor() const {
    return source_.get();
  }
  /// Copies what is there. False once there is nothing more to come.
  bool copy();
  /// Prints a last line that has no line feed.
  void finish();

 private:
  void print(std::string_view text);

  Descriptor source_;
  Descriptor file_;
  int console_ = 1;
  std::string prefix_;
  std::string line_;
};

} // namespace lockstep::launch
