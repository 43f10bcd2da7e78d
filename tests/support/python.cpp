// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/python.h"

#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// python_server.py and both ends of the lines to and from it. One for a
// process, from the first script on; it ends with this process, whose end
// closes `to`. Lines go through a socket, which can be told not to raise
// SIGPIPE: a Python that has died fails the test, with words.
class Server {
 public:
  Server() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) !=
        0) {
      return;
    }
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = python_program();
    std::string script = LOCKSTEP_SOURCE_DIR "/tests/support/python_server.py";
    std::array<char*, 3> arguments{program.data(), script.data(), nullptr};
    pid_t process = 0;
    const int failed = ::posix_spawn(
        &process,
        program.c_str(),
        &actions,
        nullptr,
        arguments.data(),
        environ);
    posix_spawn_file_actions_destroy(&actions);
    (void)::close(ends[1]);
    if (failed == 0) {
      socket_ = ends[0];
      from_ = ::fdopen(socket_, "r");
    }
  }

  // The exit status of a script; nullopt if the server is gone.
  std::optional<int> run(const nlohmann::json& request) {
    const std::lock_guard lock(mutex_);
    if (from_ == nullptr || !send(request.dump() + "\n")) {
      return std::nullopt;
    }
    std::array<char, 32> line{};
    if (std::fgets(line.data(), line.size(), from_) == nullptr) {
      return std::nullopt;
    }
    const std::string_view text(line.data());
    return parse_number<int>(text.substr(0, text.find('\n')));
  }

 private:
  [[nodiscard]] bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent =
          ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR) {
        return false;
      }
      text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
    return true;
  }

  std::mutex mutex_ = {};
  int socket_ = -1;
  std::FILE* from_ = nullptr;
};

} // namespace

std::string python_program() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* chosen = std::getenv("LOCKSTEP_PYTHON");
  return chosen != nullptr ? chosen : LOCKSTEP_PYTHON;
}

std::string run_python(
    const std::string& script,
    const std::vector<std::string>& args) {
  static Server server;
  const ScratchDir scratch;
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/oracle/" + script;
  const std::optional<int> status = server.run(
      {{"script", path},
       {"args", args},
       {"out", scratch / "stdout.txt"},
       {"err", scratch / "stderr.txt"}});
  if (status != 0) {
    ADD_FAILURE() << script << " "
                  << (status ? "ended with status " + std::to_string(*status)
                             : "was not run: the Python server has ended")
                  << "\n"
                  << read_file(scratch / "stderr.txt");
  }
  return read_file(scratch / "stdout.txt");
}

std::vector<std::string> python_lines(
    const std::string& script,
    const std::vector<std::string>& args) {
  std::vector<std::string> lines = split(run_python(script, args), '\n');
  std::erase(lines, "");
  return lines;
}

} // namespace lockstep::test
