// SPDX-License-Identifier: BSD-3-Clause
//
// Where rank 0's store listens: at the address that the job was given, and not,
// as c10d would by itself, on every interface of the machine.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/internal/descriptor.h"

namespace lockstep::dist::internal {

struct Listener {
  /// Bound; c10d takes it over. None if this process holds the port already.
  Descriptor socket = {};
  std::uint16_t port = 0;
};

/// Binds to `host` if that is an address of this machine. To all of its
/// addresses if it is not (a name of a service or a gateway), or if it names
/// the machine by a loopback address and `is_one_host` is false: others must
/// reach it. Port 0: one that is free.
/// Errors: throws kInvalidArgument for a host without an address, kUnavailable
/// for a port that is taken, naming its holder where /proc tells.
Listener
listen_at(const std::string& host, std::uint16_t port, bool is_one_host);

} // namespace lockstep::dist::internal
