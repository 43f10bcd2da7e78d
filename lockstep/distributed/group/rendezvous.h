// SPDX-License-Identifier: BSD-3-Clause
//
// From `init_method` to the store that the ranks share.
#pragma once

#include <string>
#include <string_view>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/distributed/process_group.h"

namespace lockstep::dist::internal {

/// Where a rank is, and the store it shares with the others.
struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store = {};
  int rank = 0;
  int size = 1;
};

/// Throws kInvalidArgument of "dist.init"; `detail` as in `lockstep explain`.
[[noreturn]] void refuse_init(
    std::string_view detail,
    std::string message,
    std::string hint = {});

/// Errors: as `init_process_group`.
Rendezvous rendezvous(const InitOptions& options);

} // namespace lockstep::dist::internal
