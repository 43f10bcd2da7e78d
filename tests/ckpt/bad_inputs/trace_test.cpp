// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel sees of `lockstep ckpt` on hostile files: one program is
// started, nothing is connected, nothing is opened for writing.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/ckpt/bad_inputs/bad_input.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::ckpt::bad_inputs {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCalls =
    "%process,%network,%file,write,pwrite64,writev,sendfile,memfd_create";

// System calls of `lockstep ARGUMENTS`, one per line.
std::vector<std::string> trace_of(const std::string& arguments) {
  const test::ScratchDir folder;
  const std::string log = folder / "trace";
  // The leak checker cannot run below a tracer.
  test::run_shell(
      "ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=" + kCalls + " -o '" +
      log + "' '" LOCKSTEP_BINARY_DIR "/bin/lockstep' " + arguments);
  return split(test::file_text(log), '\n');
}

bool can_trace() {
  return test::run_shell("strace -qq -o /dev/null true").status == 0;
}

// "1234  openat(AT_FDCWD, ...) = 3" -> "openat(AT_FDCWD, ...) = 3"
std::string call_of(const std::string& line) {
  const std::size_t begin = line.find_first_not_of("0123456789 ");
  return begin == std::string::npos ? "" : line.substr(begin);
}

bool starts_with_any(
    const std::string& call,
    const std::vector<std::string>& starts) {
  return std::ranges::any_of(starts, [&call](const std::string& start) {
    return call.starts_with(start);
  });
}

// True for the input and for what the system's loader and a sanitizer read.
bool is_expected_path(const std::string& call, const std::string& input) {
  const std::size_t begin = call.find('"');
  const std::string path = call.substr(std::min(call.size(), begin));
  return path.starts_with("\"" + input + "\"") ||
         starts_with_any(
             path,
             {"\"/etc/ld.so.", "\"/lib", "\"/usr/lib", "\"/proc/self/"});
}

// Calls that looking at `input` does not need.
std::vector<std::string> suspicious(
    const std::vector<std::string>& lines,
    const std::string& input) {
  std::vector<std::string> found;
  std::size_t programs = 0;
  for (const std::string& line : lines) {
    const std::string call = call_of(line);
    const bool is_start = call.starts_with("execve(");
    programs += is_start ? 1 : 0;
    const bool is_open = starts_with_any(call, {"open(", "openat("});
    const bool is_read_only = call.find("O_RDONLY") != std::string::npos &&
                              call.find("O_CREAT") == std::string::npos &&
                              is_expected_path(call, input);
    const bool is_printing = starts_with_any(call, {"write(1, ", "write(2, "});
    const bool is_harmless = (is_start && programs == 1) ||
                             (is_open && is_read_only) || is_printing ||
                             starts_with_any(
                                 call,
                                 {"access(",
                                  "stat",
                                  "fstat",
                                  "newfstatat(",
                                  "lstat(",
                                  "statx(",
                                  "readlink",
                                  "exit",
                                  "getcwd(",
                                  "+++ ",
                                  "--- "});
    if (!call.empty() && !is_harmless) {
      found.push_back(call);
    }
  }
  return found;
}

TEST(SystemCalls, TheTestSeesWritesAndPrograms) {
  EXPECT_THAT(
      suspicious({"7 execve(\"a\") = 0", "7 execve(\"/bin/sh\") = 0"}, "in"),
      testing::ElementsAre(HasSubstr("/bin/sh")));
  for (const char* call :
       {"socket(AF_INET, SOCK_STREAM, 0) = 3",
        "openat(AT_FDCWD, \"x\", O_WRONLY|O_CREAT, 0666) = 3",
        "openat(AT_FDCWD, \"in\", O_RDWR) = 3",
        "openat(AT_FDCWD, \"other\", O_RDONLY) = 3",
        "write(3, \"x\", 1) = 1",
        "unlink(\"x\") = 0",
        "vfork() = 8",
        "clone3({flags=0}, 88) = 8"}) {
    EXPECT_THAT(suspicious({call}, "in"), testing::SizeIs(1)) << call;
  }
}

TEST(SystemCalls, HostileFilesStartNothingAndWriteNothing) {
  if (!can_trace()) {
    GTEST_SKIP() << "strace cannot trace in this environment";
  }
  if (test::kIsSanitized) {
    GTEST_SKIP() << "the sanitizer probes memory by writing into a pipe";
  }
  const test::ScratchDir folder;
  const std::string path = folder / "input.pt";
  for (const BadInput& row : all_rows()) {
    if (row.path != "input.pt") {
      continue;
    }
    std::ofstream(path, std::ios::binary) << row.bytes;
    for (const char* command : {"ckpt ", "ckpt verify "}) {
      const auto lines = trace_of(command + ("'" + path + "'"));
      EXPECT_GT(lines.size(), 3U) << row.name;
      EXPECT_THAT(suspicious(lines, path), IsEmpty()) << command << row.name;
    }
  }
}

} // namespace
} // namespace lockstep::ckpt::bad_inputs
