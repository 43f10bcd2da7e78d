// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/run_folder.h"

#include <array>
#include <ctime>
#include <filesystem>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/config_file.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kRuns = "runs";

/// UTC, so that names sort by time wherever they were made.
std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &parts);
  return {text.data(), size};
}

std::string wanted_path(const TrainConfig& config) {
  if (!config.output.empty()) {
    return config.output;
  }
  const std::string name = config.name.empty()
                               ? format("{}-{}", timestamp(), config.model)
                               : config.name;
  return format("{}/{}", kRuns, name);
}

std::string checkpoint_in(const std::string& folder) {
  return format("{}/{}", folder, kCheckpointFile);
}

bool exists(FileSystem& fs, const std::string& path) {
  return fs.stat(path).has_value();
}

bool holds_run(FileSystem& fs, const std::string& path) {
  return exists(fs, format("{}/{}", path, kArgsFile)) ||
         exists(fs, checkpoint_in(path));
}

/// The run below `runs/` whose checkpoint was written last.
std::optional<std::string> newest_run(FileSystem& fs) {
  const std::string root(kRuns);
  const auto names = fs.list(root);
  std::optional<std::string> newest;
  std::filesystem::file_time_type newest_time{};
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const std::string path = checkpoint_in(root + "/" + name);
    std::error_code missing;
    const auto time = std::filesystem::last_write_time(path, missing);
    if (!missing && (!newest || time > newest_time)) {
      newest = path;
      newest_time = time;
    }
  }
  return newest;
}

} // namespace

RunFolder create_run_folder(FileSystem& fs, const TrainConfig& config) {
  const std::string wanted = wanted_path(config);
  RunFolder folder{.path = wanted};
  for (int number = 2; holds_run(fs, folder.path); ++number) {
    folder = {.path = format("{}-{}", wanted, number), .taken = wanted};
  }
  fs.create_directories(folder.path).value();
  write_file_atomically(fs, folder.file(kArgsFile), to_yaml(config)).value();
  return folder;
}

RunFolder continue_run_folder(
    FileSystem& fs,
    const std::string& path,
    const TrainConfig& config) {
  RunFolder folder{.path = path};
  write_file_atomically(fs, folder.file(kArgsFile), to_yaml(config)).value();
  return folder;
}

std::optional<std::string> find_checkpoint(
    FileSystem& fs,
    const TrainConfig& config) {
  if (config.resume != "auto") {
    const FileInfo info = fs.stat(config.resume).value();
    const std::string path = info.kind == FileInfo::Kind::kDirectory
                                 ? checkpoint_in(config.resume)
                                 : config.resume;
    if (!exists(fs, path)) {
      raise(
          {.code = ErrorCode::kNotFound,
           .op = "train.resume",
           .message = "the folder holds no checkpoint",
           .hint = "a run folder has one after its first epoch",
           .path = path});
    }
    return path;
  }
  if (config.output.empty()) {
    return newest_run(fs);
  }
  const std::string path = checkpoint_in(config.output);
  return exists(fs, path) ? std::optional(path) : std::nullopt;
}

} // namespace lockstep::train
