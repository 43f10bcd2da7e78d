// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

Result<std::string> writer_of(
    const Checkpoint& file,
    const std::string& input) {
  const FormatWriter& writer = format_of(file).writer;
  if (writer.write != nullptr && writer.can_rewrite) {
    return std::string(writer.name);
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
  LOCKSTEP_ASSIGN(options.format, writer_of(file));
  options.reuse_checksums = true;
  options.extra_records = file.extra_records;
  options.byteorder_record = !file.byteorder.empty();
  return save(output, root, options, fs);
}

} // namespace lockstep::ckpt
