// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/run_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/utc.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/event_file.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/checkpoints/config_file.h"

namespace lockstep::train {
namespace {

/// UTC, so that names sort by time wherever they were made.
std::string timestamp() {
  return utc_text(utc_now(), "{:04}{:02}{:02}-{:02}{:02}{:02}");
}

/// A file of such a name is somebody's.
constexpr std::array<std::string_view, 12> kRunFiles{
    kArgsFile,
    kEnvFile,
    kLatestFile,
    kBestFile,
    kResultsFile,
    kCurvesFile,
    kStepsFile,
    kLogFile,
    kMetricsFile,
    kPageFile,
    kDetailsFile,
    kTraceFile};

/// None if there is no such folder.
std::vector<std::string> names_in(FileSystem& fs, const std::string& path) {
  auto names = fs.list(path);
  if (!names && names.error().code == ErrorCode::kNotFound) {
    return {};
  }
  return std::move(names).value();
}

bool is_taken(FileSystem& fs, const std::string& path) {
  const auto names = names_in(fs, path);
  return std::ranges::any_of(names, [](const std::string& name) {
    return checkpoint_step(name) ||
           name.starts_with(report::kEventFilePrefix) ||
           std::ranges::find(kRunFiles, name) != kRunFiles.end();
  });
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

} // namespace

void write_args(
    FileSystem& fs,
    const RunFolder& folder,
    const TrainConfig& config) {
  write_file_atomically(fs, folder.file(kArgsFile), to_yaml(config)).value();
}

std::string plain_path(const std::string& path) {
  const auto normal = std::filesystem::path(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::string folder_word(std::string_view model) {
  std::string word;
  for (const char c : model) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (is_plain) {
      word += c;
    } else if (!word.ends_with('-')) {
      word += '-';
    }
  }
  return word;
}

std::string named_folder(const TrainConfig& config) {
  if (config.name.empty()) {
    return config.output.empty() ? std::string() : plain_path(config.output);
  }
  return format(
      "{}/{}",
      config.output.empty() ? std::string(kRunsFolder)
                            : plain_path(config.output),
      config.name);
}

bool holds_run(FileSystem& fs, const std::string& path) {
  const auto names = names_in(fs, path);
  return std::ranges::any_of(names, [](const std::string& name) {
    return checkpoint_step(name) || name == kArgsFile || name == kLatestFile;
  });
}

RunFolder create_run_folder(
    FileSystem& fs,
    const TrainConfig& config,
    const std::string& wanted) {
  std::string first = wanted.empty() ? named_folder(config) : wanted;
  if (first.empty()) {
    first =
        format("{}/{}-{}", kRunsFolder, timestamp(), folder_word(config.model));
  }
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

RunFolder continue_run_folder(FileSystem& fs, const std::string& path) {
  return {.path = path, .lock = FolderLock::take(fs, path).value()};
}

} // namespace lockstep::train
