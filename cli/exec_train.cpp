// SPDX-License-Identifier: BSD-3-Clause
#include "cli/exec_train.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

constexpr std::array<std::string_view, 4> kTrainCommandNames{
    "train",
    "bench",
    "doctor",
    "summary"};
constexpr const char* kProgram = "lockstep-train";

// Folder of the running program, "" if the system does not say.
std::string program_folder() {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size =
      ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  if (size <= 0) {
    return "";
  }
  return parent_directory(
      std::string(buffer.data(), static_cast<std::size_t>(size)));
}

} // namespace

bool is_train_command(std::string_view name) {
  return std::ranges::find(kTrainCommandNames, name) !=
         kTrainCommandNames.end();
}

Error exec_train(char** argv) {
  const std::string folder = program_folder();
  if (!folder.empty()) {
    for (const char* below : {"/", "/../libexec/"}) {
      ::execv((folder + below + kProgram).c_str(), argv);
    }
  }
  ::execvp(kProgram, argv);
  const bool is_missing = errno == ENOENT;
  return {
      .code = ErrorCode::kUnavailable,
      .op = "cli.exec",
      .message = format(
          "'lockstep {}' needs the program {}, which {}",
          escape(argv[1]),
          kProgram,
          is_missing ? "was not found" : "does not start"),
      .hint = "build Lockstep with LibTorch, or put the program into PATH"};
}

} // namespace lockstep::cli
