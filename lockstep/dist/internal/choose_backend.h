// SPDX-License-Identifier: BSD-3-Clause
//
// Which of c10d's backends a group works with, and its connections.
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/dist/internal/exchange_texts.h"
#include "lockstep/dist/internal/group_impl.h"

namespace lockstep::dist::internal {

/// "gloo", "shm", or "" for what fits best, from `InitOptions::backend`.
/// Errors: throws kInvalidArgument for an unknown name or several at once,
/// kUnavailable for one that is not in this build.
std::string parse_backend(const std::string& text);

/// How the ranks of a group find each other.
struct Connections {
  /// Gloo's own; nested so that Python's ranks find it.
  c10::intrusive_ptr<c10d::Store> store = {};
  std::string group_name = {};
  ExchangeTexts exchange = {};
};

/// Gives `group` the backend `wanted`, as parsed, and notes its name there.
/// Errors: throws kUnavailable on every rank if it cannot be.
void connect(
    ProcessGroup::Impl& group,
    const std::string& wanted,
    const Connections& connections);

} // namespace lockstep::dist::internal
