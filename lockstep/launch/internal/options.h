// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep run` is asked to start, in torchrun's terms.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::launch {

/// Where one output of a rank goes.
enum class OutputPlace {
  /// As the launcher's own, unchanged.
  kConsole,
  /// Into the rank's log file alone.
  kFile,
  /// Into the file, and line by line, each with the rank in front, to the
  /// console.
  kBoth,
};

/// Of one rank.
struct OutputPlaces {
  OutputPlace out = OutputPlace::kConsole;
  OutputPlace err = OutputPlace::kConsole;

  friend bool operator==(const OutputPlaces&, const OutputPlaces&) = default;
};

/// What to start, and how.
struct LaunchOptions {
  /// The program and its arguments.
  std::vector<std::string> program = {};
  /// Ranks on this machine, at least 1.
  int local_size = 1;
  /// Machines, each with as many ranks, and which of them this is.
  int nodes = 1;
  int node_rank = 0;
  /// Where rank 0's store listens. Port 0: one that is free, another for each
  /// attempt; for one machine only.
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  std::string run_id = "none";
  /// In front of the rank in the console: "[default0]:".
  std::string role = "default";
  /// How often all ranks are started again after a failure.
  int max_restarts = 0;
  /// Between asking ranks to end and killing them.
  std::chrono::milliseconds shutdown_timeout = std::chrono::seconds(30);
  /// Holds the log and error files; a new folder for temporary files if empty.
  std::string log_dir = {};
  /// By local rank; those behind the end go to the console.
  std::vector<OutputPlaces> places = {};
  /// Local ranks whose output the console shows; all if empty.
  std::vector<int> shown_ranks = {};
  /// Signals that are passed on to the ranks.
  std::vector<int> signals = {};
  /// Each rank sees one GPU, as number 0.
  bool is_virtual_local_rank = false;

  [[nodiscard]] int world_size() const {
    return nodes * local_size;
  }
  [[nodiscard]] int rank_of(int local_rank) const {
    return node_rank * local_size + local_rank;
  }
  [[nodiscard]] OutputPlaces places_of(int local_rank) const;
};

/// torchrun's --redirects and --tee for `local_size` ranks: "3" for all, or
/// "0:3,1:2" for some; 0 none, 1 standard output, 2 standard error, 3 both.
/// What both name goes to file and console.
/// Errors: kInvalidArgument, naming the flag and its value.
Result<std::vector<OutputPlaces>>
parse_places(std::string_view redirects, std::string_view tee, int local_size);

/// "SIGTERM,SIGINT" -> their numbers. Errors: kInvalidArgument.
Result<std::vector<int>> parse_signals(std::string_view names);

/// "SIGKILL" for 9; "signal 99" for a number without a name.
std::string signal_name(int number);

/// The parts of CUDA_VISIBLE_DEVICES, without blanks around them; nothing if it
/// is not set.
std::optional<std::vector<std::string>> visible_devices();

/// Whether each of `local_size` ranks can see a GPU of its own.
/// Errors: kInvalidArgument if CUDA_VISIBLE_DEVICES names fewer.
Status check_own_devices(int local_size);

/// How many ranks "4", "auto", "cpu" or "gpu" are on this machine.
/// Errors: kInvalidArgument; kUnavailable for "gpu" where there is none.
Result<int> parse_local_size(std::string_view text);

} // namespace lockstep::launch
