// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/rewrite.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load/format_table.h"

namespace lockstep::ckpt {
namespace {

// Formats whose writer has another name than their reader.
struct WriterName {
  std::string_view format = {};
  std::string_view writer = {};
};
constexpr std::array kWriterNames{
    WriterName{"zip", "pt"},
    WriterName{"legacy", "pt-legacy"}};

} // namespace

Result<std::string> writer_of(
    const Checkpoint& file,
    const std::string& input) {
  std::string_view name = file.format;
  for (const WriterName& row : kWriterNames) {
    name = row.format == file.format ? row.writer : name;
  }
  const auto writers = format_writers();
  if (std::ranges::find(writers, name, &FormatWriter::name) != writers.end()) {
    return std::string(name);
  }
  return Error{
      .code = ErrorCode::kUnsupported,
      .op = "ckpt.edit",
      .message =
          format("files of the format '{}' can only be read", file.format),
      .hint = "'lockstep ckpt convert' writes another format",
      .path = input,
      .detail = "E_NO_WRITER"};
}

Status rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    SaveOptions options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(options.format, writer_of(file, output));
  options.reuse_checksums = true;
  return save(output, root, options, fs);
}

} // namespace lockstep::ckpt
