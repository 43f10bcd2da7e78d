// SPDX-License-Identifier: BSD-3-Clause
//
// The variables that a rank is started with: torchrun's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/launch/internal/options.h"

namespace lockstep::launch {

/// Name and value.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// What differs from rank to rank and from attempt to attempt.
struct RankStart {
  int local_rank = 0;
  /// How often all ranks have been started before.
  int attempt = 0;
  int master_port = 0;
  std::string error_file = {};
};

/// What is set for a rank, besides the launcher's own environment. Ranks that
/// are to see a GPU each have passed `check_own_devices`.
Variables rank_variables(const LaunchOptions& options, const RankStart& start);

/// OpenMP threads of each rank, so that all together have as many as there are
/// cores for this process; 0 where nothing is to be set: one rank, or
/// OMP_NUM_THREADS is there.
int threads_for_each(const LaunchOptions& options);

/// The environment of this process, and `variables` instead of those of the
/// same name: "NAME=value".
std::vector<std::string> merged_environment(const Variables& variables);

} // namespace lockstep::launch
