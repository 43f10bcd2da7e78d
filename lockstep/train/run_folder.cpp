// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/run_folder.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoint_files.h"
#include "lockstep/train/config_file.h"

namespace lockstep::train {
namespace {

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
  return format("{}/{}", kRunsFolder, name);
}

/// A file of such a name is somebody's.
constexpr std::array<std::string_view, 7> kRunFiles{
    kArgsFile,
    kLatestFile,
    kBestFile,
    kResultsFile,
    kStepsFile,
    kLogFile,
    kJsonFile};

bool is_taken(FileSystem& fs, const std::string& path) {
  const auto is_there = [&](std::string_view name) {
    return fs.stat(format("{}/{}", path, name)).has_value();
  };
  return std::ranges::any_of(kRunFiles, is_there) ||
         !list_checkpoints(fs, path).empty();
}

/// Makes `path` and takes it; nothing if a file of another run is there, or
/// came meanwhile.
std::unique_ptr<RunFolder> take_empty(FileSystem& fs, const std::string& path) {
  if (is_taken(fs, path)) {
    return nullptr;
  }
  fs.create_directories(path).value();
  fs.sync_directory(parent_directory(path)).value();
  auto lock = FolderLock::take(fs, path);
  if (!lock && lock.error().detail == "E_LOCKED") {
    return nullptr;
  }
  auto folder = std::make_unique<RunFolder>(
      RunFolder{.path = path, .lock = std::move(lock).value()});
  return is_taken(fs, path) ? nullptr : std::move(folder);
}

void write_args(FileSystem& fs, const RunFolder& folder, const TrainConfig& c) {
  write_file_atomically(fs, folder.file(kArgsFile), to_yaml(c)).value();
}

} // namespace

bool holds_run(FileSystem& fs, const std::string& path) {
  return fs.stat(format("{}/{}", path, kArgsFile)).has_value() ||
         fs.stat(format("{}/{}", path, kLatestFile)).has_value() ||
         !list_checkpoints(fs, path).empty();
}

RunFolder create_run_folder(
    FileSystem& fs,
    const TrainConfig& config,
    const std::string& wanted) {
  const std::string first = wanted.empty() ? wanted_path(config) : wanted;
  auto folder = take_empty(fs, first);
  for (int number = 2; !folder; ++number) {
    folder = take_empty(fs, format("{}-{}", first, number));
  }
  if (folder->path != first) {
    folder->taken = first;
  }
  write_args(fs, *folder, config);
  return std::move(*folder);
}

RunFolder continue_run_folder(
    FileSystem& fs,
    const std::string& path,
    const TrainConfig& config) {
  RunFolder folder{.path = path, .lock = FolderLock::take(fs, path).value()};
  // Whatever cannot be removed is in nobody's way.
  (void)remove_stale_temporaries(fs, path);
  write_args(fs, folder, config);
  return folder;
}

} // namespace lockstep::train
