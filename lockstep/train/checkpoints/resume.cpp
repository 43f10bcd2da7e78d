// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/observer.h"

namespace lockstep::train {
namespace {

std::string inside(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).lexically_normal();
}

/// Nothing if nothing is there.
/// Errors: throws what keeps the answer from being known.
template <class T>
std::optional<T> known(Result<T> answer) {
  if (!answer && answer.error().code == ErrorCode::kNotFound) {
    return std::nullopt;
  }
  return std::move(answer).value();
}

bool exists(FileSystem& fs, const std::string& path) {
  return known(fs.stat(path)).has_value();
}

[[noreturn]] void
nothing_there(const std::string& path, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "train.resume",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path,
       .detail = "E_NO_RUN"});
}

/// The run below `runs/` that was written to last.
std::optional<std::string> newest_run(FileSystem& fs) {
  const std::string root(kRunsFolder);
  std::optional<std::string> newest;
  std::int64_t newest_time = 0;
  for (const std::string& name :
       known(fs.list(root)).value_or(std::vector<std::string>())) {
    const std::string folder = inside(root, name);
    for (const std::string_view file : {kLatestFile, kArgsFile}) {
      auto answer = fs.stat(inside(folder, file));
      if (!answer && answer.error().detail == "E_PERMISSION") {
        continue; // somebody else's folder
      }
      const auto info = known(std::move(answer));
      if (info && (!newest || info->modified > newest_time)) {
        newest = folder;
        newest_time = info->modified;
      }
    }
  }
  return newest;
}

/// The file that is opened: a link's target in the same folder, so that
/// messages and comparisons name one file by one name.
Result<std::string> real_file(FileSystem& fs, const std::string& path) {
  LOCKSTEP_ASSIGN(const std::string real, fs.resolve(path));
  const std::string sibling = inside(parent_directory(path), base_name(real));
  LOCKSTEP_ASSIGN(const std::string same, fs.resolve(sibling));
  return same == real && base_name(path) != base_name(real) ? sibling : path;
}

/// A run's checkpoints.
struct Candidates {
  /// The newest one and those before it, the newest first.
  std::vector<std::string> paths = {};
  /// There is the link to the newest, but not what it leads to.
  bool is_newest_gone = false;
};

Result<Candidates> candidates_in(FileSystem& fs, const std::string& folder) {
  Candidates found;
  std::optional<std::int64_t> newest_step;
  const std::string link = inside(folder, kLatestFile);
  const auto newest = fs.stat(link);
  if (newest) {
    LOCKSTEP_ASSIGN(const std::string file, real_file(fs, link));
    found.paths.push_back(file);
    newest_step = checkpoint_step(base_name(file));
  } else if (newest.error().code != ErrorCode::kNotFound) {
    return newest.error();
  }
  LOCKSTEP_ASSIGN(const auto all, fs.list(folder));
  found.is_newest_gone =
      !newest && std::ranges::find(all, kLatestFile) != all.end();
  LOCKSTEP_ASSIGN(const auto names, list_checkpoints(fs, folder));
  for (const std::string& name : names) {
    // Higher steps than the newest checkpoint's were cut off before they
    // became the newest: the run comes to them again.
    if (!newest_step || checkpoint_step(name) < newest_step) {
      found.paths.push_back(inside(folder, name));
    }
  }
  return found;
}

/// Says so where an older checkpoint is taken in place of the newest one.
void warn_of_gone(
    const Candidates& run,
    const std::string& folder,
    std::vector<std::string>& warnings) {
  if (run.is_newest_gone) {
    warnings.push_back(format(
        "what {} leads to is gone{}",
        inside(folder, kLatestFile),
        run.paths.empty() ? "" : ": an older checkpoint is taken"));
  }
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

/// The first of `paths`, one at least, that is whole.
FoundCheckpoint first_whole(
    FileSystem& fs,
    const std::vector<std::string>& paths) {
  FoundCheckpoint found;
  std::vector<Error> errors;
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
    errors.push_back(std::move(file).error());
  }
  raise(std::move(errors.front()));
}

/// As `ResumePoint` has it.
bool ends_first_epoch(const ckpt::Value& root) {
  const auto is = [](const ckpt::Value* value, std::int64_t number) {
    const std::int64_t* found = value != nullptr ? value->as_int() : nullptr;
    return found != nullptr && *found == number;
  };
  const auto is_best = [](const auto& item) {
    const std::optional<double> number = item.second.number();
    // Scripts save an accuracy of 0 before the first test.
    return item.first.text().starts_with("best_") && number &&
           (item.first.text() != "best_acc1" || *number > 0);
  };
  const ckpt::Value* cursor = root.find("cursor");
  const ckpt::Dict* const dict = root.as_dict();
  const bool has_best =
      dict != nullptr && std::ranges::any_of(dict->items, is_best);
  return is(root.find("epoch"), 1) && cursor != nullptr &&
         is(cursor->find("batch"), 0) && has_best;
}

Resumption open_first(FileSystem& fs, const std::vector<std::string>& paths) {
  FoundCheckpoint found = first_whole(fs, paths);
  Resumption resumption;
  resumption.checkpoint = to_run_checkpoint(found.root, found.path);
  resumption.path = std::move(found.path);
  resumption.ends_first_epoch = ends_first_epoch(resumption.checkpoint.root);
  resumption.warnings = std::move(found.warnings);
  resumption.notes = resumption.checkpoint.notes;
  return resumption;
}

Resumption resume_folder(FileSystem& fs, const std::string& folder) {
  const Candidates run = candidates_in(fs, folder).value();
  if (run.paths.empty() && run.is_newest_gone) {
    nothing_there(
        folder,
        "the run had checkpoints, but they are gone",
        "--output names another folder for a new run");
  }
  Resumption found =
      run.paths.empty() ? Resumption() : open_first(fs, run.paths);
  warn_of_gone(run, folder, found.warnings);
  found.folder = folder;
  found.newest = run.paths.empty() ? std::string() : run.paths.front();
  found.is_in_place = run.paths.empty() || found.checkpoint.is_ours;
  return found;
}

Resumption resume_file(FileSystem& fs, const std::string& path) {
  Resumption found = open_first(fs, {path});
  const std::string folder = parent_directory(path);
  if (!holds_run(fs, folder)) {
    found.is_in_place = false;
    return found;
  }
  const std::string file = real_file(fs, path).value();
  const std::string best = inside(folder, kBestFile);
  found.folder = folder;
  found.newest = newest_checkpoint(fs, folder).value();
  found.is_best = exists(fs, best) && real_file(fs, best).value() == file;
  found.is_in_place = found.checkpoint.is_ours && found.newest == file;
  return found;
}

/// What "auto" and "best" mean.
std::optional<std::string> default_folder(
    FileSystem& fs,
    const TrainConfig& config) {
  const std::string named = named_folder(config);
  if (named.empty()) {
    return newest_run(fs);
  }
  return holds_run(fs, named) ? std::optional(named) : std::nullopt;
}

Resumption resume_best(FileSystem& fs, const TrainConfig& config) {
  const auto folder = default_folder(fs, config);
  const std::string path = folder ? inside(*folder, kBestFile) : "";
  if (!folder || !exists(fs, path)) {
    nothing_there(
        folder.value_or(std::string(kRunsFolder)),
        format("no run has a {}", kBestFile),
        "it is written after each epoch that is the best so far; --output "
        "names the run folder");
  }
  return resume_file(fs, path);
}

Resumption resume_path(FileSystem& fs, const std::string& given) {
  const std::string path = plain_path(given);
  if (!exists(fs, path)) {
    nothing_there(
        path,
        "there is no such checkpoint or run folder",
        "--resume auto goes on with the newest run");
  }
  const FileInfo info = fs.stat(path).value();
  if (info.kind != FileInfo::Kind::kDirectory) {
    return resume_file(fs, path);
  }
  if (!holds_run(fs, path)) {
    nothing_there(
        path,
        "the folder does not hold a run",
        format("a run folder has {} and {}", kArgsFile, kLatestFile));
  }
  return resume_folder(fs, path);
}

} // namespace

Result<std::string> newest_checkpoint(
    FileSystem& fs,
    const std::string& folder) {
  LOCKSTEP_ASSIGN(const Candidates run, candidates_in(fs, folder));
  return run.paths.empty() ? std::string() : run.paths.front();
}

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

FoundCheckpoint read_checkpoint(const std::string& path, FileSystem& fs) {
  return first_whole(fs, {path});
}

std::optional<FoundCheckpoint> find_checkpoint(
    const std::string& folder,
    FileSystem& fs) {
  if (!exists(fs, folder)) {
    return std::nullopt;
  }
  const Candidates run = candidates_in(fs, folder).value();
  if (run.paths.empty()) {
    return std::nullopt;
  }
  FoundCheckpoint found = first_whole(fs, run.paths);
  warn_of_gone(run, folder, found.warnings);
  return found;
}

} // namespace lockstep::train
