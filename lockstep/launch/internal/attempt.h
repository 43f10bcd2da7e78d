// SPDX-License-Identifier: BSD-3-Clause
//
// All ranks of this machine, started once: until all have ended, or one has
// failed and the others were stopped.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/log_sink.h"
#include "lockstep/launch/internal/console.h"
#include "lockstep/launch/internal/failure_report.h"
#include "lockstep/launch/internal/options.h"
#include "lockstep/launch/internal/output_copy.h"
#include "lockstep/launch/internal/rank_process.h"

namespace lockstep::launch {

/// Takes signals in place of their usual effect while it lives; they are read
/// from `descriptor`. Those that are ignored stay so, as nohup wants. SIGPIPE
/// is ignored. Threads: for programs with one.
class SignalReader {
 public:
  explicit SignalReader(const std::vector<int>& signals);
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  [[nodiscard]] int descriptor() const {
    return descriptor_.get();
  }
  /// The next one; 0 if none has come.
  int next();
  [[nodiscard]] bool has_come() const {
    return has_come_;
  }

 private:
  sigset_t before_ = {};
  Descriptor descriptor_;
  bool has_come_ = false;
};

/// How an attempt has ended.
struct AttemptEnd {
  /// In the order in which the ranks ended.
  std::vector<RankEnd> ends = {};
  /// The signal that ended it; 0 if none did.
  int signal = 0;
};

/// Where an attempt happens.
struct AttemptPlace {
  /// How often the ranks have been started before.
  int number = 0;
  int master_port = 0;
  /// Holds a folder for each local rank; exists.
  std::string folder = {};
};

class Attempt {
 public:
  /// All must outlive it.
  Attempt(
      const LaunchOptions& options,
      AttemptPlace place,
      SignalReader& signals,
      Consoles& consoles,
      LogSink& log);

  /// Errors: kNotFound or kIo if a rank does not start; none is left running.
  Result<AttemptEnd> run();

 private:
  struct Running {
    RankProcess process;
    int local_rank = 0;
  };
  using Clock = std::chrono::steady_clock;

  Status start(int local_rank);
  Result<int> open_output(int local_rank, OutputPlace place, int console);
  void wait();
  void take_signals();
  void take_ends();
  void copy_outputs();
  void record(Running& rank, int status);
  void stop(int signal);
  void stop_followers();
  void kill_late_ones();

  const LaunchOptions& options_;
  AttemptPlace place_;
  SignalReader& signals_;
  Consoles& consoles_;
  LogSink& log_;
  std::vector<Running> running_;
  // Kept until all have: what they have started ends with a failed attempt.
  std::vector<RankProcess> ended_;
  std::vector<OutputCopy> copies_;
  // The launcher's ends of what a rank is started with.
  std::vector<Descriptor> handed_over_;
  AttemptEnd end_;
  bool is_stopping_ = false;
  std::optional<Clock::time_point> deadline_;
  // When those that still run after a failure are asked to end.
  std::optional<Clock::time_point> patience_;
};

} // namespace lockstep::launch
