// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/launcher.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/internal/attempt.h"
#include "lockstep/launch/internal/master.h"
#include "lockstep/launch/internal/rank_environment.h"

namespace lockstep::launch {
namespace {

// Linux gives clients ports from kClientPorts on. A rank that waits for the
// store could be given the store's own there, and be connected with itself.
constexpr int kFirstPort = 10000;
constexpr int kClientPorts = 32768;

// A port that nobody listens on. It is free again when this returns, as with
// torchrun: rank 0 takes it a moment later.
Result<int> free_port(const std::string& host) {
  const std::string address = is_address(host) ? host : "127.0.0.1";
  constexpr int kTries = 1000;
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirstPort, kClientPorts - 1);
  for (int i = 0; i < kTries; ++i) {
    if (const int port = any(random); can_listen(address, port)) {
      return port;
    }
  }
  return errno_error("run.port", host, errno);
}

// A new folder for this job: LOG_DIR/RUN_ID_XXXXXX.
Result<std::string> make_folder(const LaunchOptions& options) {
  std::error_code code;
  std::string parent = options.log_dir;
  if (parent.empty()) {
    parent = std::filesystem::temp_directory_path(code).string();
  } else {
    LOCKSTEP_TRY(real_fs().create_directories(parent));
  }
  parent = std::filesystem::absolute(parent, code).string();
  std::string id = options.run_id;
  std::ranges::replace(id, '/', '_');
  std::string path = format("{}/{}_XXXXXX", parent, id);
  if (::mkdtemp(path.data()) == nullptr) {
    return errno_error("run.log", path, errno);
  }
  return path;
}

// Status of a job in which no rank failed on its own account: what a rank says
// that took the signal in hand (75: saved) before what the signal did to
// others.
int status_of(const AttemptEnd& end) {
  constexpr int kSignalBase = 128;
  int status = 0;
  for (const RankEnd& rank : end.ends) {
    const int code = exit_code(rank.status);
    if (code != 0 && (status == 0 || code < status)) {
      status = code;
    }
  }
  return status < kSignalBase ? status : kSignalBase + end.signal;
}

void say_start(const LaunchOptions& options, LogSink& log) {
  if (const int threads = threads_for_each(options); threads != 0) {
    log.write(
        LogLevel::kInfo,
        format(
            "OMP_NUM_THREADS={} for each of {} ranks, as it is not set",
            threads,
            options.local_size));
  }
}

// The error files are in it: it stays if one was written, or logs were wanted.
void remove_if_temporary(
    const LaunchOptions& options,
    const std::string& folder) {
  bool has_logs = !options.log_dir.empty();
  for (int rank = 0; rank < options.local_size; ++rank) {
    has_logs |= options.places_of(rank) != OutputPlaces();
  }
  if (!has_logs) {
    std::error_code code;
    std::filesystem::remove_all(folder, code);
  }
}

Result<int> run_attempts(
    const LaunchOptions& options,
    SignalReader& signals,
    Consoles& consoles,
    LogSink& log) {
  LOCKSTEP_ASSIGN(const std::string folder, make_folder(options));
  say_start(options, log);
  for (int number = 0;; ++number) {
    AttemptPlace place{
        .number = number,
        .master_port = options.master_port,
        .folder = format("{}/attempt_{}", folder, number)};
    if (place.master_port == 0) {
      LOCKSTEP_ASSIGN(place.master_port, free_port(options.master_addr));
    }
    Attempt attempt(options, std::move(place), signals, consoles, log);
    LOCKSTEP_ASSIGN(const AttemptEnd end, attempt.run());
    const RankEnd* root = root_cause(end.ends);
    if (root == nullptr) {
      remove_if_temporary(options, folder);
      return status_of(end);
    }
    log.write(LogLevel::kError, failure_text(end.ends));
    if (number == options.max_restarts || end.signal != 0) {
      return exit_code(root->status);
    }
    log.write(
        LogLevel::kWarning,
        format(
            "starting all ranks again, restart {} of {}",
            number + 1,
            options.max_restarts));
  }
}

// Waits for whoever reads; after a signal not for one that does not.
void print_rest(Consoles& consoles, SignalReader& signals) {
  constexpr int kForReader = 1000; // milliseconds
  std::array entries{
      pollfd{signals.descriptor(), POLLIN, 0},
      pollfd{consoles.out.descriptor(), POLLOUT, 0},
      pollfd{consoles.err.descriptor(), POLLOUT, 0}};
  while (consoles.is_behind()) {
    entries[1].fd = consoles.out.is_behind() ? consoles.out.descriptor() : -1;
    entries[2].fd = consoles.err.is_behind() ? consoles.err.descriptor() : -1;
    const int timeout = signals.has_come() ? kForReader : -1;
    if (::poll(entries.data(), entries.size(), timeout) == 0) {
      return;
    }
    signals.next();
    consoles.flush();
  }
}

} // namespace

Result<int>
launch(const LaunchOptions& options, Consoles& consoles, LogSink& log) {
  SignalReader signals(options.signals);
  auto status = run_attempts(options, signals, consoles, log);
  print_rest(consoles, signals);
  return status;
}

} // namespace lockstep::launch
