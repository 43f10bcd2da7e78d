// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/python.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::test {
namespace {

// In single quotes the shell changes nothing.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t n =
             std::fread(buffer.data(), 1, buffer.size(), file)) {
    text.append(buffer.data(), n);
  }
  return text;
}

std::string read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return {};
  }
  std::string text = read_all(file);
  (void)std::fclose(file);
  return text;
}

} // namespace

std::string python_program() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* chosen = std::getenv("LOCKSTEP_PYTHON");
  return chosen != nullptr ? chosen : LOCKSTEP_PYTHON;
}

std::string run_python(
    const std::string& script,
    const std::vector<std::string>& args) {
  const ScratchDir scratch;
  const std::string errors = scratch / "stderr.txt";
  std::string command =
      quoted(python_program()) + " " +
      quoted(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/oracle/" + script);
  for (const std::string& arg : args) {
    command += " " + quoted(arg);
  }
  command += " 2>" + quoted(errors);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "no shell for " << command;
    return {};
  }
  std::string output = read_all(pipe);
  const int status = ::pclose(pipe);
  if (status != 0) {
    ADD_FAILURE() << command << " ended with status " << status << "\n"
                  << read_file(errors);
  }
  return output;
}

std::vector<std::string> python_lines(
    const std::string& script,
    const std::vector<std::string>& args) {
  std::vector<std::string> lines = split(run_python(script, args), '\n');
  std::erase(lines, "");
  return lines;
}

} // namespace lockstep::test
