// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/shell.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/support/scratch_dir.h"

namespace lockstep::test {

ShellOutcome run_shell(const std::string& command) {
  const ScratchDir folder;
  const std::string err = folder / "stderr";
  std::FILE* pipe = ::popen(("(" + command + ") 2>'" + err + "'").c_str(), "r");
  ShellOutcome outcome;
  if (pipe == nullptr) {
    return outcome;
  }
  std::array<char, 4096> block{};
  for (std::size_t n = 0;
       (n = std::fread(block.data(), 1, block.size(), pipe)) != 0;) {
    outcome.out.append(block.data(), n);
  }
  const int status = ::pclose(pipe);
  outcome.status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = file_text(err);
  return outcome;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace lockstep::test
