// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <map>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errno_error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/internal/new_names.h"
#include "lockstep/ckpt/safetensors/internal/safetensors_plan.h"
#include "lockstep/ckpt/safetensors/safetensors_writer.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::string_view kExtension = ".safetensors";

std::string stem_of(const std::string& path) {
  return path.ends_with(kExtension)
             ? path.substr(0, path.size() - kExtension.size())
             : path;
}

std::string
shard_path(const std::string& stem, std::size_t index, std::size_t count) {
  return format("{}-{:05d}-of-{:05d}{}", stem, index + 1, count, kExtension);
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

std::string index_text(
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

} // namespace

Status write_safetensors_shards(
    const std::string& path,
    SafetensorsPlan& plan,
    const SaveOptions& options,
    FileSystem& fs) {
  const auto ends = split_points(plan.tensors, options.shard_bytes);
  const std::string index = safetensors_index_path(path);
  // An index of an earlier save must not survive between new and old files.
  const auto old = fs.stat(index);
  if (old && !options.replace) {
    return errno_error("ckpt.save", index, EEXIST);
  }
  if (old) {
    LOCKSTEP_TRY(fs.remove(index));
    if (options.durable) {
      LOCKSTEP_TRY(fs.sync_directory(parent_directory(index)));
    }
  } else if (old.error().code != ErrorCode::kNotFound) {
    return old.error();
  }
  if (ends.size() == 1) {
    return write_safetensors_file(
        path,
        plan.tensors,
        plan.metadata,
        options,
        fs);
  }
  NewNames made(fs, index);
  const std::string stem = stem_of(path);
  std::map<std::string, std::string> files;
  std::uint64_t total = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto shard = std::span(plan.tensors).subspan(begin, ends[i] - begin);
    const std::string file = shard_path(stem, i, ends.size());
    made.add(file);
    LOCKSTEP_TRY(
        write_safetensors_file(file, shard, plan.metadata, options, fs));
    for (const PlannedTensor& planned : shard) {
      files.emplace(planned.name, base_name(file));
      total += planned.bytes;
    }
    begin = ends[i];
  }
  return write_file_atomically(
      fs,
      index,
      index_text(files, total),
      {.durable = options.durable, .replace = options.replace});
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

std::string safetensors_index_path(const std::string& path) {
  return internal::stem_of(path) + std::string(internal::kExtension) +
         ".index.json";
}

} // namespace lockstep::ckpt
