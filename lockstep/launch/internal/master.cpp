// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/master.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::launch {
namespace {

constexpr int kPorts = 65536;

Error bad_master(std::string message, std::string hint) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "run.args",
      .message = std::move(message),
      .hint = std::move(hint)};
}

// Into the other two flags.
Result<MasterFlags> split_endpoint(MasterFlags flags) {
  const std::string endpoint = std::exchange(flags.endpoint, {});
  const std::size_t colon = endpoint.rfind(':');
  const bool is_bare =
      colon == std::string::npos || endpoint.back() == ']' ||
      (endpoint.find(':') != colon && endpoint[colon - 1] != ']');
  flags.addr = is_bare ? endpoint : endpoint.substr(0, colon);
  flags.port = kDefaultPort;
  if (!is_bare) {
    const std::string text = endpoint.substr(colon + 1);
    flags.port = parse_number<int>(text, 0, kPorts - 1);
    if (!flags.port) {
      return bad_master(
          format("--rdzv-endpoint: '{}' is not a port", escape(text)),
          "HOST:PORT, HOST for port 29500, or HOST:0 for a free one");
    }
  }
  return flags;
}

Result<Master> of_one_machine(const MasterFlags& flags) {
  Master master{.port = flags.port.value_or(0)};
  const std::string host = without_brackets(flags.addr);
  if (host.empty()) {
    return master;
  }
  if (!is_address(host) || can_listen(host, 0)) {
    master.addr = host;
  } else {
    master.notes.push_back(format(
        "{} is not an address of this machine, where all ranks are: they meet "
        "at {}; --nnodes says how many machines there are",
        escape(host),
        master.addr));
  }
  return master;
}

Result<Master> of_several_machines(const MasterFlags& flags) {
  Master master{
      .addr = without_brackets(flags.addr),
      .port = flags.port.value_or(kDefaultPort)};
  if (master.addr.empty()) {
    return bad_master(
        "--master-addr is missing: several machines need the address of the "
        "first",
        "give all of them the same --master-addr and --master-port; "
        "--master-addr 127.0.0.1 if all are on this one");
  }
  if (master.port == 0) {
    return bad_master(
        "port 0, a free one, is for one machine: several must know the port",
        "give all of them the same --master-port");
  }
  if (is_loopback(master.addr)) {
    master.notes.push_back(format(
        "{} is each machine itself: all {} nodes must be started on this one",
        master.addr,
        flags.nodes));
  }
  return master;
}

} // namespace

Result<Master> choose_master(const MasterFlags& given) {
  MasterFlags flags = given;
  const bool is_given =
      !flags.addr.empty() || flags.port || !flags.endpoint.empty();
  if (flags.is_standalone && flags.nodes > 1) {
    return bad_master(
        format("--standalone is one machine; got --nnodes {}", flags.nodes),
        "leave one of them out");
  }
  if (flags.is_standalone) {
    Master master;
    if (is_given) {
      master.notes.emplace_back(
          "--master-addr, --master-port and --rdzv-endpoint have no effect "
          "with --standalone");
    }
    return master;
  }
  if (!flags.endpoint.empty()) {
    LOCKSTEP_ASSIGN(flags, split_endpoint(std::move(flags)));
  }
  if (flags.port && (*flags.port < 0 || *flags.port >= kPorts)) {
    return bad_master(
        format("--master-port: {} is not a port", *flags.port),
        "1 to 65535");
  }
  return flags.nodes > 1 ? of_several_machines(flags) : of_one_machine(flags);
}

bool is_address(const std::string& host) {
  in6_addr place{}; // has room for both
  return ::inet_pton(AF_INET, host.c_str(), &place) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &place) == 1;
}

std::string without_brackets(std::string host) {
  return host.size() > 2 && host.front() == '[' && host.back() == ']'
             ? host.substr(1, host.size() - 2)
             : std::move(host);
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool can_listen(const std::string& address, int port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = ::htons(static_cast<std::uint16_t>(port));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) {
    return false;
  }
  const Descriptor probe(
      ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // NOLINTBEGIN(*-reinterpret-cast): the interface of sockets
  const auto* any = is_v4 ? reinterpret_cast<const sockaddr*>(&v4)
                          : reinterpret_cast<const sockaddr*>(&v6);
  // NOLINTEND(*-reinterpret-cast)
  return probe && ::bind(probe.get(), any, is_v4 ? sizeof v4 : sizeof v6) == 0;
}

} // namespace lockstep::launch
