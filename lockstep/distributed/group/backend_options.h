// SPDX-License-Identifier: BSD-3-Clause
//
// What Gloo's and NCCL's backends are made with, as Python makes its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::dist::internal {

struct BackendOptions {
  std::chrono::milliseconds timeout = {};
  std::string group_name = {};
  /// As ranks of the job; none for the default group.
  std::vector<std::uint64_t> global_ranks = {};
};

} // namespace lockstep::dist::internal
