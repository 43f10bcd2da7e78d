// SPDX-License-Identifier: BSD-3-Clause
//
// The program under test as a child process.
//   Process train({"train", "--epochs", "1"});
//   train.wait_for("Test:");
//   train.send(SIGINT);
//   EXPECT_EQ(train.wait(), 75) << train.errors();
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::test {

/// Runs `lockstep-train` of this build. What it prints to stdout and stderr is
/// read in one stream each.
class Process {
 public:
  explicit Process(const std::vector<std::string>& args);
  /// Kills what still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Reads stderr until a line holds `text`; false if it ended before.
  bool wait_for(const std::string& text);
  void send(int signal) const;
  /// Reads both streams to their ends. Returns the exit status, or 128 + the
  /// signal that ended it.
  int wait();

  [[nodiscard]] const std::string& output() const {
    return output_;
  }
  [[nodiscard]] const std::string& errors() const {
    return errors_;
  }

 private:
  pid_t pid_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  std::string output_;
  std::string errors_;
};

} // namespace lockstep::test
