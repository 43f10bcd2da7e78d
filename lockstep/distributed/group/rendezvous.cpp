// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/rendezvous.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/group/listener.h"
#include "lockstep/distributed/group/timed_store.h"
#include "lockstep/launch/internal/master.h"

namespace lockstep::dist::internal {
namespace {

[[noreturn]] void bad_argument(std::string message, std::string hint) {
  refuse_init("E_RENDEZVOUS", std::move(message), std::move(hint));
}

/// As in Python, an empty variable is one that is not set.
std::optional<std::string> variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at the start
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt
                                            : std::optional<std::string>(value);
}

std::uint16_t parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  if (!port) {
    bad_argument(
        format("port must have value from 0 to 65535 but was {}.", text),
        "MASTER_PORT, or what follows ':' in tcp://HOST:PORT");
  }
  return *port;
}

struct Address {
  std::string host = {};
  std::uint16_t port = 0;
};

/// Whether no rank needs to come from another machine; the launcher may not
/// tell, and then a loopback address does.
bool is_one_host(const RankInfo& place, const std::string& host) {
  return place.local_size == place.size ||
         (place.local_size == 0 && launch::is_loopback(host));
}

/// A store may outlive who has used it: torchrun's agent keeps its own when it
/// starts all ranks again, a process keeps one with a group's last handle. What
/// was left there must not be read. Python's ranks do read it.
c10::intrusive_ptr<c10d::Store> unused_part(
    c10::intrusive_ptr<c10d::Store> store,
    int rank,
    const InitOptions& options) {
  if (options.has_python_ranks) {
    return store;
  }
  const auto go_below = [&](const std::string& name) {
    store = c10::make_intrusive<c10d::PrefixStore>("lockstep/" + name, store);
  };
  const auto attempt = variable("TORCHELASTIC_RESTART_COUNT");
  if (attempt && *attempt != "0") {
    go_below("attempt_" + *attempt);
  }
  // Each rank counts for itself: all come equally often.
  const auto count = store->add(format("lockstep/inits/{}", rank), 1);
  if (count > 1) {
    go_below(format("init_{}", count));
  }
  return store;
}

/// Rank 0 holds the store, unless torchrun's agent does.
Rendezvous tcp_rendezvous(
    const Address& address,
    const RankInfo& place,
    const InitOptions& options) {
  const int rank = place.rank;
  const int size = place.size;
  const bool agent_has_it =
      variable("TORCHELASTIC_USE_AGENT_STORE") == std::optional("True");
  c10d::TCPStoreOptions tcp;
  tcp.port = address.port;
  tcp.isServer = rank == 0 && !agent_has_it;
  tcp.numWorkers = static_cast<std::size_t>(size);
  tcp.timeout = options.timeout;
  tcp.multiTenant = !agent_has_it;
  tcp.useLibUV = variable("USE_LIBUV") != std::optional("0");
  // Among our own ranks waiting is the group's affair, which names who is late;
  // Python's rank 0 counts those who come here.
  tcp.waitWorkers = options.has_python_ranks;
  Listener listener;
  if (tcp.isServer) {
    listener =
        listen_at(address.host, address.port, is_one_host(place, address.host));
    tcp.port = listener.port;
    if (listener.socket) {
      tcp.masterListenFd = listener.socket.release(); // the store closes it
    }
  }
  const std::string name = format(
      "the store at {}:{}, which {} holds,",
      address.host,
      address.port,
      agent_has_it ? "torchrun's agent" : "rank 0");
  try {
    const auto store = timed_store(name, options.timeout, [address, tcp] {
      return c10::make_intrusive<c10d::TCPStore>(address.host, tcp);
    });
    return {
        .store = unused_part(store, rank, options),
        .rank = rank,
        .size = size};
  } catch (const c10::Error& error) {
    raise(
        {.code = ErrorCode::kTimeout,
         .op = "dist.init",
         .message = format(
             "rank {} of {} cannot reach the store at {}:{}; {}",
             rank,
             size,
             address.host,
             address.port,
             error.what_without_backtrace()),
         .hint = "rank 0 must run on that host, with that port free and "
                 "reachable",
         .detail = "E_RENDEZVOUS"});
  }
}

/// Errors: throws kInvalidArgument if the place is not in the options.
void check_place(const InitOptions& options) {
  if (options.world_size < 1 || options.rank < 0 ||
      options.rank >= options.world_size) {
    bad_argument(
        format(
            "{} needs the rank and the number of ranks; got rank {}, "
            "world_size {}",
            escape(options.init_method),
            options.rank,
            options.world_size),
        "0 <= rank < world_size");
  }
}

std::string expected_variable(const char* name) {
  return format(
      "Error initializing torch.distributed using env:// rendezvous: "
      "environment variable {} expected, but not set",
      name);
}

/// As given, else what the launcher has set.
RankInfo place_of(const InitOptions& options) {
  if (options.rank < 0 && options.world_size < 0) {
    return rank_info_from_environment().value();
  }
  check_place(options);
  return {.rank = options.rank, .size = options.world_size, .local_size = 0};
}

Rendezvous from_env(std::string_view rest, const InitOptions& options) {
  if (!rest.empty()) {
    bad_argument(
        format("'{}' says too much", escape(options.init_method)),
        "env:// has nothing behind it");
  }
  const RankInfo info = place_of(options);
  const auto host = variable("MASTER_ADDR");
  const auto port = variable("MASTER_PORT");
  if (info.size == 1 && !host && !port) {
    return {.store = c10::make_intrusive<c10d::HashStore>()};
  }
  constexpr const char* kHint =
      "torchrun sets it; with srun or mpirun, export it: the host of rank 0, "
      "and a port that is free there";
  if (!host) {
    bad_argument(expected_variable("MASTER_ADDR"), kHint);
  }
  if (!port) {
    bad_argument(expected_variable("MASTER_PORT"), kHint);
  }
  return tcp_rendezvous(
      {.host = *host, .port = parse_port(*port)},
      info,
      options);
}

Rendezvous from_tcp(std::string_view rest, const InitOptions& options) {
  check_place(options);
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    bad_argument(
        format("'{}' names no port", escape(options.init_method)),
        "write it as tcp://HOST:PORT");
  }
  return tcp_rendezvous(
      {.host = launch::without_brackets(std::string(rest.substr(0, colon))),
       .port = parse_port(rest.substr(colon + 1))},
      place_of(options),
      options);
}

Rendezvous from_file(std::string_view path, const InitOptions& options) {
  check_place(options);
  if (path.empty()) {
    bad_argument("file:// names no file", "write it as file:///shared/path");
  }
  const std::string name(path);
  const auto store = timed_store(
      format("the store in the file {}", escape(name)),
      options.timeout,
      [name, size = options.world_size] {
        return c10::make_intrusive<c10d::FileStore>(name, size);
      });
  return {
      .store = unused_part(store, options.rank, options),
      .rank = options.rank,
      .size = options.world_size};
}

struct Method {
  std::string_view scheme = {};
  Rendezvous (*find)(std::string_view rest, const InitOptions&) = nullptr;
};

constexpr std::array kMethods{
    Method{"env://", from_env},
    Method{"tcp://", from_tcp},
    Method{"file://", from_file}};

} // namespace

void refuse_init(
    std::string_view detail,
    std::string message,
    std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.init",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = std::string(detail)});
}

Rendezvous rendezvous(const InitOptions& options) {
  const std::string_view method = options.init_method;
  for (const Method& row : kMethods) {
    if (method.starts_with(row.scheme)) {
      return row.find(method.substr(row.scheme.size()), options);
    }
  }
  bad_argument(
      format("unknown init_method '{}'", escape(method)),
      "env://, tcp://HOST:PORT or file://PATH");
}

} // namespace lockstep::dist::internal
