// SPDX-License-Identifier: BSD-3-Clause
#include "cli/exec_train.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/commands.h"

namespace lockstep::cli {
namespace {

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

// Where the program may be, in the order in which it is looked for.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  const std::string folder = program_folder();
  if (!folder.empty()) {
    paths.push_back(format("{}/{}", folder, kProgram));
    paths.push_back(format("{}/../libexec/{}", folder, kProgram));
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
  const char* search_path = std::getenv("PATH");
  for (const std::string& part :
       split(search_path == nullptr ? "" : search_path, ':')) {
    paths.push_back(format("{}/{}", part.empty() ? "." : part, kProgram));
  }
  return paths;
}

} // namespace

bool is_train_command(std::string_view name) {
  return std::ranges::find(
             train::kTrainCommands,
             name,
             &train::TrainCommand::name) != train::kTrainCommands.end();
}

std::string train_program() {
  const std::vector<std::string> paths = candidates();
  const auto found = std::ranges::find_if(paths, [](const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0;
  });
  return found == paths.end() ? "" : *found;
}

Error exec_train(const std::vector<std::string>& args) {
  std::string program = kProgram;
  std::vector<std::string> words = args;
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  bool is_missing = true;
  for (const std::string& path : candidates()) {
    ::execv(path.c_str(), argv.data());
    is_missing &= errno == ENOENT || errno == ENOTDIR;
  }
  return {
      .code = ErrorCode::kUnavailable,
      .op = "cli.exec",
      .message = format(
          "'lockstep {}' needs the program {}, which {}",
          escape(args.front()),
          kProgram,
          is_missing ? "was not found" : "does not start"),
      .hint =
          "install the wheel lockstep-torch (scripts/torch_package.sh), build "
          "Lockstep with LibTorch, or put the program into PATH"};
}

} // namespace lockstep::cli
