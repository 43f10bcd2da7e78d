// SPDX-License-Identifier: BSD-3-Clause
//
// Where the ranks of a job meet: what --master-addr, --master-port,
// --rdzv-endpoint and --standalone come to.
//   const auto master = choose_master({.addr = "localhost", .nodes = 1});
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::launch {

/// Of torchrun, where nobody says another one.
inline constexpr int kDefaultPort = 29500;

/// As given; an empty text is none, as a variable without a value.
struct MasterFlags {
  std::string addr = {};
  std::optional<int> port = {};
  /// HOST:PORT, instead of both.
  std::string endpoint = {};
  /// One machine and a free port, whatever the others say.
  bool is_standalone = false;
  int nodes = 1;
};

/// Where rank 0 listens.
struct Master {
  std::string addr = "127.0.0.1";
  /// 0: one that is free, on one machine.
  int port = 0;
  /// What of the flags has no effect, or may not be meant. For the user.
  std::vector<std::string> notes = {};
};

/// On one machine all ranks are here: the number of another one is not used,
/// and a note says so. Several machines need an address; one that only this
/// machine knows is for several "machines" that are all here.
/// Errors: kInvalidArgument, naming the flag.
Result<Master> choose_master(const MasterFlags& flags);

/// Whether all know that `host` is this machine: localhost, 127.*, ::1.
bool is_loopback(std::string_view host);

/// "[::1]", as addresses with colons are written in front of a port, -> "::1".
std::string without_brackets(std::string host);

/// Whether it is a number, of version 4 or 6, and no name.
bool is_address(const std::string& host);

/// Whether a program of this machine can listen at `address`, a number: at
/// `port`, which nobody has, or at any (0). Names are not looked up: the
/// launcher is linked statically, and its ranks look for themselves.
bool can_listen(const std::string& address, int port);

} // namespace lockstep::launch
