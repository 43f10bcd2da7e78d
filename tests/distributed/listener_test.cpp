// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/listener.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// The addresses at which somebody listens at this port, as /proc/net/tcp and
/// tcp6 show them: "0100007F" is 127.0.0.1.
std::vector<std::string> listeners(std::uint16_t port) {
  std::vector<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number;
      std::string local;
      std::string remote;
      std::string state;
      words >> number >> local >> remote >> state;
      const auto end = format(":{:04X}", static_cast<int>(port));
      if (state == "0A" && local.ends_with(end)) {
        found.push_back(local.substr(0, local.size() - end.size()));
      }
    }
  }
  return found;
}

/// Listens, as c10d does with what it is given.
std::vector<std::string> listeners_of(
    const std::string& host,
    bool is_one_host) {
  const Listener listener = listen_at(host, 0, is_one_host);
  EXPECT_EQ(::listen(listener.socket.get(), 1), 0);
  return listeners(listener.port);
}

TEST(Listener, ListensWhereItWasTold) {
  EXPECT_THAT(listeners_of("127.0.0.1", true), ElementsAre("0100007F"));
  EXPECT_THAT(listeners_of("127.0.0.2", true), ElementsAre("0200007F"));
}

TEST(Listener, OtherHostsReachNoLoopback) {
  EXPECT_THAT(
      listeners_of("127.0.0.1", false),
      ElementsAre(testing::MatchesRegex("0+")));
}

TEST(Listener, AnAddressOfAnotherMachineIsAGateway) {
  // RFC 5737 keeps these for documents: no machine has them.
  EXPECT_THAT(
      listeners_of("192.0.2.7", true),
      ElementsAre(testing::MatchesRegex("0+")));
}

TEST(Listener, TheStoreListensThereAlone) {
  Listener listener = listen_at("127.0.0.1", 0, true);
  c10d::TCPStoreOptions options;
  options.port = listener.port;
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener.socket.release();
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  EXPECT_THAT(listeners(listener.port), ElementsAre("0100007F"));
  store->set("key", std::vector<std::uint8_t>{1});
  EXPECT_EQ(store->get("key"), std::vector<std::uint8_t>{1});
}

Error error_of(const std::string& host, std::uint16_t port) {
  try {
    listen_at(host, port, true);
  } catch (const Exception& error) {
    return error.error();
  }
  return {.message = "no error"};
}

TEST(Listener, WhoHoldsThePortIsNamed) {
  Listener listener = listen_at("127.0.0.1", 0, true);
  ::listen(listener.socket.get(), 1);
  // In this process the store is shared: c10d finds it.
  EXPECT_FALSE(listen_at("127.0.0.1", listener.port, true).socket);
  // Another one is named.
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::uint16_t port = listener.port;
  listener.socket.reset();
  const Error error = error_of("127.0.0.1", port);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(
      error.message,
      HasSubstr(format(
          "port {} of 127.0.0.1 is taken by process {} (",
          port,
          child)));
}

TEST(Listener, AHostWithoutAnAddressIsNamed) {
  const Error error = error_of("no-such-host.invalid", 0);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, HasSubstr("'no-such-host.invalid'"));
}

} // namespace
} // namespace lockstep::dist::internal
