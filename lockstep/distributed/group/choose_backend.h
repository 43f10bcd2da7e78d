// SPDX-License-Identifier: BSD-3-Clause
//
// Which of c10d's backends a group works with, and its connections.
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/distributed/group/backend_choice.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/shm/exchange_texts.h"

namespace lockstep::dist::internal {

/// From `InitOptions::backend`. Errors: throws kInvalidArgument for an unknown
/// name, kUnavailable for one that cannot be here.
BackendChoice choose_backend(const InitOptions& options);

/// How the ranks of a group find each other.
struct Connections {
  /// The group's. A backend's is nested in it so that Python's ranks find it.
  c10::intrusive_ptr<c10d::Store> store = {};
  std::string group_name = {};
  /// Not the job's first, with all ranks.
  bool is_sub_group = false;
  ExchangeTexts exchange = {};
};

/// Gives `group` the backends `wanted` and notes their names there.
/// Errors: throws kUnavailable on every rank if it cannot be.
void connect(
    ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    const Connections& connections);

} // namespace lockstep::dist::internal
