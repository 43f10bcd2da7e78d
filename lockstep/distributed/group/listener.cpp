// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <netdb.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(
      host.c_str(),
      std::to_string(port).c_str(),
      &wanted,
      &found);
  if (code != 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.init",
         .message = format(
             "the address '{}' is not known here: {}",
             escape(host),
             ::gai_strerror(code)),
         .hint = "MASTER_ADDR is the host of rank 0",
         .detail = "E_RENDEZVOUS"});
  }
  return {found, &::freeaddrinfo};
}

bool is_loopback(const addrinfo& address) {
  constexpr std::uint32_t kLoopback = 127;
  // NOLINTBEGIN(*-reinterpret-cast): the interface of sockets
  if (address.ai_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return ::ntohl(v4->sin_addr.s_addr) >> 24U == kLoopback;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
  // NOLINTEND(*-reinterpret-cast)
  return std::memcmp(&v6->sin6_addr, &in6addr_loopback, sizeof(in6_addr)) == 0;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  // NOLINTBEGIN(*-reinterpret-cast): the interface of sockets
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  // The port has the same place in both families.
  return ::ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  // NOLINTEND(*-reinterpret-cast)
}

/// The inode of the socket that listens at `port`, as /proc/net/tcp shows it:
///   sl  local_address rem_address   st tx_queue:rx_queue ... inode
///    0: 0100007F:733C 00000000:0000 0A 00000000:00000000 ... 12345 ...
std::string listening_inode(std::uint16_t port) {
  constexpr std::string_view kListens = "0A";
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::array<std::string, 10> word;
      for (std::string& each : word) {
        words >> each;
      }
      const auto colon = word[1].rfind(':');
      if (word[3] == kListens && colon != std::string::npos &&
          std::strtoul(word[1].c_str() + colon + 1, nullptr, 16) == port) {
        return word[9];
      }
    }
  }
  return "";
}

/// The process that has a descriptor of the socket; nothing if /proc does not
/// tell.
std::optional<pid_t> holder_of(const std::string& inode) {
  const std::string socket = format("socket:[{}]", inode);
  std::error_code skipped;
  for (const auto& process :
       std::filesystem::directory_iterator("/proc", skipped)) {
    const auto pid = parse_number<pid_t>(process.path().filename().string(), 1);
    if (!pid) {
      continue;
    }
    auto files =
        std::filesystem::directory_iterator(process.path() / "fd", skipped);
    for (; files != std::filesystem::directory_iterator();
         files.increment(skipped)) {
      if (std::filesystem::read_symlink(files->path(), skipped) == socket) {
        return pid;
      }
    }
  }
  return std::nullopt;
}

std::string name_of(pid_t pid) {
  std::ifstream file(format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return escape(name);
}

[[noreturn]] void raise_taken(
    const std::string& host,
    std::uint16_t port,
    std::optional<pid_t> holder) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "dist.init",
       .message = format(
           "port {} of {} is taken{}",
           port,
           escape(host),
           holder ? format(" by process {} ({})", *holder, name_of(*holder))
                  : ""),
       .hint =
           "another job may use it: choose another MASTER_PORT, or end that "
           "process",
       .detail = "E_RENDEZVOUS"});
}

/// Bound, or none with `errno` set.
Descriptor bound(const addrinfo& address) {
  Descriptor socket(::socket(
      address.ai_family,
      address.ai_socktype | SOCK_CLOEXEC,
      address.ai_protocol));
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  return socket &&
                 ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0
             ? std::move(socket)
             : Descriptor();
}

/// The first of the addresses that can be had.
Listener
bind_first(const std::string& host, std::uint16_t port, bool wants_others) {
  const Addresses addresses = addresses_of(host, port);
  for (const addrinfo* each = addresses.get(); each != nullptr;
       each = each->ai_next) {
    if (wants_others && is_loopback(*each)) {
      continue;
    }
    Descriptor socket = bound(*each);
    if (socket) {
      const std::uint16_t number = port_of(socket.get());
      return {.socket = std::move(socket), .port = number};
    }
    if (errno == EADDRINUSE) {
      const auto holder = holder_of(listening_inode(port));
      if (holder == ::getpid()) {
        return {.port = port};
      }
      raise_taken(host, port, holder);
    }
  }
  return {};
}

} // namespace

Listener
listen_at(const std::string& host, std::uint16_t port, bool is_one_host) {
  for (const auto& [name, wants_others] :
       {std::pair<std::string, bool>(host, !is_one_host),
        {"::", false},
        {"0.0.0.0", false}}) {
    Listener listener = bind_first(name, port, wants_others);
    if (listener.port != 0) {
      return listener;
    }
  }
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "dist.init",
       .message = format(
           "cannot listen at port {} of {}: {}",
           port,
           escape(host),
           std::strerror(errno)), // NOLINT(concurrency-mt-unsafe): a message
       .hint = "ports below 1024 need rights",
       .detail = "E_RENDEZVOUS"});
}

} // namespace lockstep::dist::internal
