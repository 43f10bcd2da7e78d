// SPDX-License-Identifier: BSD-3-Clause
//
// `load` and `save`: the tables of format_table.h decide.
#include "lockstep/ckpt/load.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/diagnose_folder.h"
#include "lockstep/ckpt/load/diagnose.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::ckpt {
namespace {

Result<Checkpoint> read_any(const ReadInput& input) {
  for (const FormatReader& reader : format_readers()) {
    LOCKSTEP_ASSIGN(const bool claimed, reader.claims(input));
    if (claimed) {
      return reader.read(input);
    }
  }
  if (input.source == nullptr) {
    const Error error{
        .code = ErrorCode::kUnsupported,
        .op = "ckpt.read",
        .message = "this folder is not a checkpoint of a known format",
        .hint = "name a file in it",
        .detail = "E_WRONG_FORMAT"};
    return explain_folder(error, input.path, *input.fs);
  }
  return diagnose(input.head, input.source->size());
}

Result<Checkpoint> read_source(ReadInput input) {
  std::vector<std::byte> scratch;
  const std::uint64_t head_bytes =
      std::min(input.source->size(), kDiagnoseBytes);
  LOCKSTEP_ASSIGN(input.head, input.source->view(0, head_bytes, scratch));
  return read_any(input);
}

Error strict_error(const Warning& warning) {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.read",
      .message = warning.text,
      .hint = "without --strict this is a warning",
      .detail = warning.name};
}

Result<Checkpoint> finished(
    Result<Checkpoint> file,
    const std::string& path,
    const LoadOptions& options) {
  if (file && options.strict && !file->warnings.empty()) {
    file = strict_error(file->warnings.front());
  }
  if (!file && file.error().path.empty()) {
    file.error().path = path;
  }
  return file;
}

} // namespace

Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options) {
  return finished(
      read_source(
          {.source = source,
           .path = name,
           .options = options,
           .load_part = load}),
      name,
      options);
}

Result<Checkpoint>
load(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  const auto info = fs.stat(path);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return finished(
        read_any(
            {.path = path, .options = options, .fs = &fs, .load_part = load}),
        path,
        options);
  }
  LOCKSTEP_ASSIGN(
      const auto source,
      open_source(path, {.use_mmap = options.use_mmap}, fs));
  return finished(
      read_source(
          {.source = source,
           .path = path,
           .options = options,
           .fs = &fs,
           .load_part = load}),
      path,
      options);
}

Status save(
    const std::string& path,
    const Value& root,
    const SaveOptions& options,
    FileSystem& fs) {
  std::vector<std::string> names;
  for (const FormatWriter& writer : format_writers()) {
    if (writer.name == options.format) {
      return writer.write(path, root, options, fs);
    }
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

} // namespace lockstep::ckpt
