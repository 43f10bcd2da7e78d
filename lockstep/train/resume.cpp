// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/resume.h"

#include <filesystem>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/tensor/map_location.h"
#include "lockstep/train/checkpoint_files.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {
namespace {

std::string inside(const std::string& folder, std::string_view name) {
  return format("{}/{}", folder, name);
}

bool exists(FileSystem& fs, const std::string& path) {
  return fs.stat(path).has_value();
}

[[noreturn]] void
nothing_there(const std::string& path, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "train.resume",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path});
}

/// The run below `runs/` that was written to last.
std::optional<std::string> newest_run(FileSystem& fs) {
  const std::string root(kRunsFolder);
  const auto names = fs.list(root);
  std::optional<std::string> newest;
  std::filesystem::file_time_type newest_time{};
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const std::string folder = inside(root, name);
    for (const std::string_view file : {kLatestFile, kArgsFile}) {
      std::error_code missing;
      const auto time =
          std::filesystem::last_write_time(inside(folder, file), missing);
      if (!missing && (!newest || time > newest_time)) {
        newest = folder;
        newest_time = time;
      }
    }
  }
  return newest;
}

/// The file that is opened: a link's target in the same folder, so that
/// messages and comparisons name one file by one name.
std::string real_file(FileSystem& fs, const std::string& path) {
  const auto real = fs.resolve(path);
  if (!real) {
    return path;
  }
  const std::string sibling = inside(parent_directory(path), base_name(*real));
  const auto same = fs.resolve(sibling);
  const bool is_elsewhere = !same || *same != *real;
  return is_elsewhere || base_name(path) == base_name(*real) ? path : sibling;
}

/// The run's newest checkpoint and those before it, the newest first.
std::vector<std::string> newest_first(
    FileSystem& fs,
    const std::string& folder) {
  std::vector<std::string> paths;
  std::optional<std::int64_t> newest_step;
  if (const std::string link = inside(folder, kLatestFile); exists(fs, link)) {
    paths.push_back(real_file(fs, link));
    newest_step = checkpoint_step(base_name(paths.front()));
  }
  for (const std::string& name : list_checkpoints(fs, folder)) {
    // Higher steps than the newest checkpoint's were cut off before they
    // became the newest: the run comes to them again.
    if (!newest_step || checkpoint_step(name) < newest_step) {
      paths.push_back(inside(folder, name));
    }
  }
  return paths;
}

/// Checks every byte, then reads.
Result<ckpt::Checkpoint> open_whole(FileSystem& fs, const std::string& path) {
  LOCKSTEP_ASSIGN(const ckpt::VerifyReport report, ckpt::verify(path, {}, fs));
  if (!report.is_sound()) {
    const ckpt::Finding& first = report.errors.front();
    return Error{
        .code = ErrorCode::kCorrupt,
        .op = "train.resume",
        .message = first.message,
        .hint = format("'lockstep ckpt verify {}' shows all damage", path),
        .path = path,
        .record = first.record,
        .detail = first.detail};
  }
  return ckpt::load(path, {}, fs);
}

/// The first of `paths` that is whole.
FoundCheckpoint first_whole(
    FileSystem& fs,
    const std::vector<std::string>& paths) {
  FoundCheckpoint found;
  std::optional<Error> first_error;
  for (const std::string& path : paths) {
    auto file = open_whole(fs, path);
    if (file) {
      found.path = path;
      found.root = std::move(file->root);
      // Where it was trained is not where it goes on.
      map_locations(found.root, "cpu");
      return found;
    }
    found.warnings.push_back(
        "a checkpoint cannot be used: " + to_string(file.error()));
    if (!first_error) {
      first_error = std::move(file).error();
    }
  }
  raise(*std::move(first_error));
}

Resumption open_first(FileSystem& fs, const std::vector<std::string>& paths) {
  FoundCheckpoint found = first_whole(fs, paths);
  Resumption resumption;
  resumption.checkpoint = to_run_checkpoint(found.root, found.path);
  resumption.path = std::move(found.path);
  resumption.warnings = std::move(found.warnings);
  return resumption;
}

Resumption resume_folder(FileSystem& fs, const std::string& folder) {
  const auto paths = newest_first(fs, folder);
  Resumption found = paths.empty() ? Resumption() : open_first(fs, paths);
  found.folder = folder;
  return found;
}

Resumption resume_file(FileSystem& fs, const std::string& path) {
  Resumption found = open_first(fs, {path});
  const std::string folder = parent_directory(path);
  if (holds_run(fs, folder)) {
    found.folder = folder;
  }
  const auto newest = newest_first(fs, folder);
  found.is_in_place = !found.folder.empty() && !newest.empty() &&
                      newest.front() == real_file(fs, path);
  return found;
}

/// What "auto" and "best" mean.
std::optional<std::string> default_folder(
    FileSystem& fs,
    const TrainConfig& config) {
  if (config.output.empty()) {
    return newest_run(fs);
  }
  return holds_run(fs, config.output) ? std::optional(config.output)
                                      : std::nullopt;
}

Resumption resume_best(FileSystem& fs, const TrainConfig& config) {
  const auto folder = default_folder(fs, config);
  const std::string path = folder ? inside(*folder, kBestFile) : "";
  if (!folder || !exists(fs, path)) {
    nothing_there(
        folder.value_or(std::string(kRunsFolder)),
        format("no run with a {}", kBestFile),
        "it is written after each epoch that is the best so far; --output "
        "names the run folder");
  }
  return resume_file(fs, path);
}

Resumption resume_path(FileSystem& fs, const std::string& path) {
  const FileInfo info = fs.stat(path).value();
  if (info.kind != FileInfo::Kind::kDirectory) {
    return resume_file(fs, path);
  }
  if (!holds_run(fs, path)) {
    nothing_there(
        path,
        "the folder holds no run",
        format("a run folder has {} and {}", kArgsFile, kLatestFile));
  }
  return resume_folder(fs, path);
}

} // namespace

std::optional<Resumption> find_resumption(
    FileSystem& fs,
    const TrainConfig& config) {
  if (config.resume.empty()) {
    return std::nullopt;
  }
  if (config.resume == "best") {
    return resume_best(fs, config);
  }
  if (config.resume != "auto") {
    return resume_path(fs, config.resume);
  }
  const auto folder = default_folder(fs, config);
  return folder ? std::optional(resume_folder(fs, *folder)) : std::nullopt;
}

std::optional<FoundCheckpoint> find_checkpoint(
    const std::string& folder,
    FileSystem& fs) {
  const auto paths = newest_first(fs, folder);
  return paths.empty() ? std::nullopt : std::optional(first_whole(fs, paths));
}

} // namespace lockstep::train
