// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/internal/errno_error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/new_names.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_plan.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kExtension = ".safetensors";

std::string stem_of(const std::string& path) {
  return path.ends_with(kExtension)
             ? path.substr(0, path.size() - kExtension.size())
             : path;
}

// Where each file's tensors end. A tensor larger than a file gets its own.
std::vector<std::size_t> split_points(
    std::span<const PlannedTensor> tensors,
    std::uint64_t shard_bytes) {
  std::vector<std::size_t> ends;
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (used != 0 && used + tensors[i].bytes > shard_bytes) {
      ends.push_back(i);
      used = 0;
    }
    used += tensors[i].bytes;
  }
  ends.push_back(tensors.size());
  return ends;
}

std::string text_of_index(
    const std::map<std::string, std::string>& files,
    std::uint64_t total) {
  std::string text = format(
      "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n"
      "  \"weight_map\": {{",
      total);
  for (const auto& [name, file] : files) {
    text += text.back() == '{' ? "\n    " : ",\n    ";
    text += json_quote(name) + ": " + json_quote(file);
  }
  return text + "\n  }\n}\n";
}

// One save. The index is the checkpoint, and what it names is whole at every
// moment: first all of the old one, then all of the new one.
class ShardSave {
 public:
  ShardSave(
      const std::string& path,
      SafetensorsPlan& plan,
      const SaveOptions& options,
      FileSystem& fs)
      : path_(path),
        index_(safetensors_index_path(path)),
        stem_(stem_of(path)),
        plan_(plan),
        ends_(split_points(plan.tensors, options.shard_bytes)),
        options_(options),
        fs_(fs) {}

  Status run() {
    LOCKSTEP_ASSIGN(const bool has_index, is_there(index_));
    LOCKSTEP_ASSIGN(const bool has_single, is_there(path_));
    if (ends_.size() == 1) {
      LOCKSTEP_TRY(write_file(path_, plan_.tensors));
      return has_index ? remove(index_) : Status();
    }
    LOCKSTEP_ASSIGN(bool is_taken, has_shards(stem_));
    if (!is_taken) {
      LOCKSTEP_TRY(write_all(stem_));
    } else {
      // The old index may name these files until the new ones are whole.
      std::string aside;
      for (int n = 1; is_taken; ++n) {
        aside = format("{}.new{}", stem_, n);
        LOCKSTEP_ASSIGN(is_taken, has_shards(aside));
      }
      LOCKSTEP_TRY(write_all(aside));
      LOCKSTEP_TRY(move_from(aside));
    }
    return has_single ? remove(path_) : Status();
  }

 private:
  [[nodiscard]] std::string shard(const std::string& stem, std::size_t i)
      const {
    return format(
        "{}-{:05d}-of-{:05d}{}",
        stem,
        i + 1,
        ends_.size(),
        kExtension);
  }

  [[nodiscard]] std::span<PlannedTensor> tensors_of(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::span(plan_.tensors).subspan(begin, ends_[i] - begin);
  }

  // Errors: kIo (E_EXISTS, E_PERMISSION) for what may not be replaced.
  [[nodiscard]] Result<bool> is_there(const std::string& path) const {
    const auto info = fs_.stat(path);
    if (!info) {
      return info.error().code == ErrorCode::kNotFound
                 ? Result<bool>(false)
                 : Result<bool>(info.error());
    }
    if (!options_.replace) {
      return errno_error("ckpt.save", path, EEXIST);
    }
    if (info->kind != FileInfo::Kind::kFile) {
      return errno_error("ckpt.save", path, EISDIR);
    }
    LOCKSTEP_TRY(fs_.check_writable(path));
    return true;
  }

  [[nodiscard]] Result<bool> has_shards(const std::string& stem) const {
    bool any = false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      LOCKSTEP_ASSIGN(const bool is_present, is_there(shard(stem, i)));
      any = any || is_present;
    }
    return any;
  }

  [[nodiscard]] std::string index_text(const std::string& stem) const {
    std::map<std::string, std::string> files;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      for (const PlannedTensor& planned : tensors_of(i)) {
        files.emplace(planned.name, base_name(shard(stem, i)));
        total += planned.bytes;
      }
    }
    return text_of_index(files, total);
  }

  Status write_file(const std::string& path, std::span<PlannedTensor> tensors) {
    return write_safetensors_file(path, tensors, plan_.metadata, options_, fs_);
  }

  Status write_index(const std::string& text) {
    return write_file_atomically(
        fs_,
        index_,
        text,
        {.durable = options_.durable, .replace = options_.replace});
  }

  // Files that were not there, then the index, which makes them the checkpoint.
  Status write_all(const std::string& stem) {
    const std::string text = index_text(stem);
    NewNames made(fs_, [this, &text] {
      const auto now = read_text(fs_, index_);
      return now ? *now == text : now.error().code != ErrorCode::kNotFound;
    });
    SaveOptions new_only = options_;
    new_only.replace = false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      const std::string path = shard(stem, i);
      made.add(path);
      Status status = write_safetensors_file(
          path,
          tensors_of(i),
          plan_.metadata,
          new_only,
          fs_);
      if (!status && status.error().detail == "E_EXISTS") {
        made.forget(path); // somebody else's
      }
      LOCKSTEP_TRY(status);
    }
    return write_index(text);
  }

  // Gives the files their names while the index names one of the two: a link
  // stands for each until it has moved.
  Status move_from(const std::string& aside) {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (!replace_link(fs_, base_name(shard(aside, i)), shard(stem_, i))) {
        return {}; // no links here; the checkpoint is whole under these names
      }
    }
    LOCKSTEP_TRY(write_index(index_text(stem_)));
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      LOCKSTEP_TRY(fs_.rename(shard(aside, i), shard(stem_, i)));
    }
    return sync_names();
  }

  Status remove(const std::string& path) {
    LOCKSTEP_TRY(fs_.remove(path));
    return sync_names();
  }

  Status sync_names() {
    return options_.durable ? fs_.sync_directory(parent_directory(index_))
                            : Status();
  }

  const std::string path_;
  const std::string index_;
  const std::string stem_;
  SafetensorsPlan& plan_;
  const std::vector<std::size_t> ends_;
  const SaveOptions& options_;
  FileSystem& fs_;
};

} // namespace

Status write_safetensors_shards(
    const std::string& path,
    SafetensorsPlan& plan,
    const SaveOptions& options,
    FileSystem& fs) {
  return ShardSave(path, plan, options, fs).run();
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

std::string safetensors_index_path(const std::string& path) {
  return internal::stem_of(path) + std::string(internal::kExtension) +
         ".index.json";
}

} // namespace lockstep::ckpt
