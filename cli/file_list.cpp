// SPDX-License-Identifier: BSD-3-Clause
#include "cli/file_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/output.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/scan.h"

namespace lockstep::cli {
namespace {

bool is_folder(const std::string& path) {
  const auto info = real_fs().stat(path);
  return info && info->kind == FileInfo::Kind::kDirectory;
}

// A folder that a reader takes as one checkpoint, and whose files are none by
// themselves. That of an index has others, too.
bool is_checkpoint_folder(const std::string& path) {
  ckpt::ReadInput input;
  input.path = path;
  input.fs = &real_fs();
  const auto format = ckpt::find_format(input);
  return format && *format != nullptr && (*format)->is_folder;
}

// The checkpoints below a folder, in the order of names.
class CheckpointWalk {
 public:
  std::vector<std::string> run(const std::string& folder) {
    pending_.push_back(folder);
    while (!pending_.empty()) {
      const std::string next = std::move(pending_.back());
      pending_.pop_back();
      visit(next);
    }
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  void visit(const std::string& folder) {
    const auto names = real_fs().list(folder);
    if (!names || !is_new(folder)) {
      return;
    }
    for (const std::string& name : *names) {
      const std::string path = format("{}/{}", folder, name);
      if (!is_folder(path)) {
        // An index says which shards there must be.
        add(path,
            ckpt::promises_checkpoint(path) ||
                name.ends_with(".safetensors.index.json") ||
                name.ends_with(".bin.index.json"));
      } else if (is_checkpoint_folder(path)) {
        add(path, true);
      } else {
        pending_.push_back(path);
      }
    }
  }

  // Links lead to the same file several times: a run's checkpoint.pth.tar.
  bool is_new(const std::string& path) {
    const auto real = real_fs().resolve(path);
    return !real || visited_.insert(*real).second;
  }

  void add(const std::string& path, bool is_checkpoint) {
    if (is_checkpoint && is_new(path)) {
      files_.push_back(path);
    }
  }

  std::vector<std::string> pending_;
  std::set<std::string> visited_;
  std::vector<std::string> files_;
};

int status_of(const Error& error) {
  return error_info(error.code).exit_code;
}

} // namespace

void add_paths(CLI::App& app, std::vector<std::string>& paths) {
  app.add_option(
         "PATH",
         paths,
         "checkpoints, and folders of them; - is standard input")
      ->required();
}

Result<FileList> list_files(const std::vector<std::string>& paths) {
  FileList list{.is_several = paths.size() > 1};
  for (const std::string& path : paths) {
    if (!is_folder(path) || is_checkpoint_folder(path)) {
      list.files.push_back(path);
      continue;
    }
    list.is_several = true;
    std::vector<std::string> below = CheckpointWalk().run(path);
    if (below.empty()) {
      return Error{
          .code = ErrorCode::kNotFound,
          .op = "cli.args",
          .message = "no file in this folder has the name of a checkpoint",
          .hint = "name the file: its bytes decide, not its name",
          .path = path,
          .detail = "E_NO_CHECKPOINT"};
    }
    std::ranges::move(below, std::back_inserter(list.files));
  }
  return list;
}

void FileAnswers::add(
    const std::string& path,
    Json json,
    const std::optional<Error>& error) {
  ++count_;
  Json row = Json::object();
  row.set("path", path).set("ok", !error).set("result", std::move(json));
  if (error) {
    ++bad_;
    row.set("error", error_json(*error));
    if (!worst_ || status_of(*error) > status_of(*worst_)) {
      worst_ = error;
    }
  }
  files_.push(std::move(row));
}

int FileAnswers::finish(std::string_view schema, bool json) {
  Json result = Json::object();
  result.set("files", std::move(files_)).set("count", count_).set("bad", bad_);
  if (!worst_) {
    if (json) {
      print_result(schema, std::move(result));
    }
    return 0;
  }
  const Error error{
      .code = worst_->code,
      .op = op_,
      .message = format(
          "{} of {} files {} not {}",
          bad_,
          count_,
          bad_ == 1 ? "is" : "are",
          what_),
      .detail = worst_->detail};
  return print_error(error, schema, json, std::move(result));
}

} // namespace lockstep::cli
