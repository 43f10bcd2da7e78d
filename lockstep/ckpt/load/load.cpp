// SPDX-License-Identifier: BSD-3-Clause
//
// `load` and `save`: the table of formats decides.
#include "lockstep/ckpt/load.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/core/unread_array.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"
#include "lockstep/ckpt/formats/numpy/numpy.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/load/diagnose.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

bool is_checkpoint_name(std::string_view name) {
  return std::ranges::any_of(formats(), [name](const Format& format) {
    return !ending_of(format, name).empty();
  });
}

// A folder that no reader claims may hold checkpoints.
Error folder_error(const ReadInput& input) {
  Error error{
      .code = ErrorCode::kUnsupported,
      .op = "ckpt.read",
      .message = "this folder is not a checkpoint of a known format",
      .hint = "name a file in it",
      .detail = "E_WRONG_FORMAT"};
  const auto names = input.fs->list(input.path);
  if (!names) {
    return error;
  }
  // The newest of a run has the shortest name. A part of a model is none.
  const std::string* found = nullptr;
  std::size_t parts = 0;
  for (const std::string& name : *names) {
    if (!is_checkpoint_name(name)) {
      continue;
    }
    if (shard_number(name)) {
      ++parts;
    } else if (found == nullptr || name.size() < found->size()) {
      found = &name;
    }
  }
  if (found == nullptr && parts != 0) {
    error.message = format(
        "the folder has {} of a model and no index that says what they hold",
        counted(parts, "file"));
    error.hint = "fetch the file that ends in .index.json, too";
  }
  if (found != nullptr) {
    error.message = format(
        "expected a checkpoint, got a folder with {}",
        counted(names->size(), "entry", "entries"));
    error.hint = format("name a file in it: {}/{}", input.path, escape(*found));
  }
  return error;
}

// Foreign bytes may lie in front of a checkpoint that is cut.
Error file_error(const ReadInput& input) {
  Error error = diagnose(input.head, input.source->size());
  const auto hint = foreign_bytes_hint(input.source, input.options.limits);
  error.hint = hint.empty() ? error.hint : hint;
  return error;
}

Result<Checkpoint> read_any(const ReadInput& input) {
  LOCKSTEP_ASSIGN(const Format* format, find_format(input));
  if (format != nullptr) {
    return caught("ckpt.read", [&] { return format->read(input); });
  }
  return input.source == nullptr ? folder_error(input) : file_error(input);
}

Result<Checkpoint> read_source(ReadInput input) {
  std::vector<std::byte> scratch;
  const std::uint64_t head_bytes =
      std::min(input.source->size(), kDiagnoseBytes);
  LOCKSTEP_ASSIGN(input.head, input.source->view(0, head_bytes, scratch));
  return read_any(input);
}

// All that is done for a file counts together, also for its shards, and what
// lies beside it is read once. `bytes`: those of a file by itself.
LoadOptions sharing(LoadOptions options, std::uint64_t bytes) {
  options.limits = counting(std::move(options.limits), bytes);
  if (options.beside == nullptr) {
    options.beside = make_folder_facts();
  }
  return options;
}

Error strict_error(const Warning& warning) {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.read",
      .message = warning.text,
      .hint = "without LoadOptions::strict this is a warning",
      .detail = warning.name};
}

// Of all tensors by their names: a format without views writes each.
Status check_views(const Value& root, std::uint64_t max_expanded_bytes) {
  ExpansionBudget budget(max_expanded_bytes);
  std::optional<Error> first;
  const Status walked = for_each_tensor(
      root,
      [&](const std::string& name, const Tensor& tensor) {
        if (first || !has_bytes(tensor)) {
          return;
        }
        if (Status added = budget.add(tensor); !added) {
          first = std::move(added).error();
          first->op = "ckpt.save";
          first->message =
              format("tensor '{}': {}", escape(name), first->message);
        }
      },
      kWriteBounds);
  // What is too much to walk is too much to write: the writer says so.
  return walked && first ? Status(*std::move(first)) : Status();
}

bool is_dcp_part(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == kDcpMetadataFile || name.ends_with(kDcpDataSuffix);
}

Result<Checkpoint> finished(
    Result<Checkpoint> file,
    const std::string& path,
    const LoadOptions& options) {
  if (file) {
    file->budget = options.limits.budget;
  }
  if (file && options.strict && !file->warnings.empty()) {
    file = strict_error(file->warnings.front());
  }
  if (!file && file.error().path.empty()) {
    file.error().path = path;
  }
  return file;
}

} // namespace

std::shared_ptr<FolderFacts> make_folder_facts() {
  return std::make_shared<FolderFacts>();
}

Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options) {
  const LoadOptions shared = sharing(options, source->size());
  return finished(
      read_source(
          {.source = source,
           .path = name,
           .options = shared,
           .load_part = load}),
      name,
      shared);
}

Result<Checkpoint>
load(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  const auto info = fs.stat(path);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    const LoadOptions shared = sharing(options, 0);
    return finished(
        read_any(
            {.path = path, .options = shared, .fs = &fs, .load_part = load}),
        path,
        shared);
  }
  LOCKSTEP_ASSIGN(
      const auto source,
      open_source(path, {.use_mmap = options.use_mmap}, fs));
  return load(source, path, options, fs);
}

Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& path,
    const LoadOptions& options,
    FileSystem& fs) {
  const LoadOptions shared = sharing(options, source->size());
  auto file = read_source(
      {.source = source,
       .path = path,
       .options = shared,
       .fs = &fs,
       .load_part = load});
  if (auto warning =
          file ? warn_of_shard(path, fs, *shared.beside) : std::nullopt) {
    file->warnings.push_back(*std::move(warning));
  }
  if (!file && is_dcp_part(path)) {
    file.error().hint =
        "it is a part of a checkpoint of torch.distributed: name its folder";
  }
  return finished(std::move(file), path, shared);
}

Status save(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  return write_checkpoint(path, root, {options}, fs);
}

Status write_checkpoint(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs) {
  if (const Format* format = format_to_write(options.format)) {
    LOCKSTEP_TRY(in_file(internal::check_arrays_read(root), path));
    // Formats of tensors alone refuse views, unless they are to be cloned.
    if (format->writer.expands_views &&
        (options.clone_views || !format->writer.is_tensors_only)) {
      LOCKSTEP_TRY(
          in_file(check_views(root, options.max_expanded_bytes), path));
    }
    return format->writer.write(path, root, options, fs);
  }
  std::vector<std::string> names;
  for (const FormatWriter& writer : format_writers()) {
    names.emplace_back(writer.name);
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.save",
      .message = format(
          "unknown format '{}'; expected one of {}",
          escape(options.format),
          join(names, ", ")),
      .path = path};
}

Result<std::string> save_bytes(const Value& root) {
  LOCKSTEP_TRY(internal::check_arrays_read(root));
  return pt_bytes(root);
}

Status export_npy(const Tensor& tensor, const BlockVisitor& visit) {
  LOCKSTEP_TRY(internal::check_whole_bytes(tensor.dtype));
  const std::string header = npy_header_text(tensor.dtype, tensor.sizes);
  LOCKSTEP_TRY(visit(as_byte_span(header)));
  return for_each_block(tensor, visit);
}

} // namespace lockstep::ckpt
