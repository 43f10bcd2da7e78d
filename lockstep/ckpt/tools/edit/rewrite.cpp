// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"

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

namespace {

class FileLock final : public PathLock {
 public:
  explicit FileLock(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)) {}
  [[nodiscard]] const Error* missing_lock() const override {
    return file_->missing_lock();
  }

 private:
  std::unique_ptr<WritableFile> file_;
};

Result<bool> are_equal(const ExtraRecord& a, const ExtraRecord& b) {
  if (a.content->nbytes != b.content->nbytes) {
    return false;
  }
  LOCKSTEP_ASSIGN(const ByteSpan one, a.content->source->load());
  LOCKSTEP_ASSIGN(const ByteSpan other, b.content->source->load());
  return std::ranges::equal(one, other);
}

} // namespace

Result<std::unique_ptr<PathLock>> lock_for_edit(
    const std::string& path,
    FileSystem& fs) {
  const auto info = fs.stat(path);
  if (info && info->kind == FileInfo::Kind::kDirectory) {
    return fs.lock_directory(path);
  }
  if (!info || info->kind != FileInfo::Kind::kFile) {
    return std::unique_ptr<PathLock>();
  }
  LOCKSTEP_ASSIGN(auto file, fs.open_update(path));
  return std::unique_ptr<PathLock>(std::make_unique<FileLock>(std::move(file)));
}

Result<std::vector<ExtraRecord>> merge_records(
    const std::vector<ExtraRecord>& first,
    const std::vector<ExtraRecord>& second,
    const MergeOptions& options) {
  LOCKSTEP_TRY(internal::check_extra_records(second));
  std::vector<ExtraRecord> records = first;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < records.size(); ++i) {
    places.emplace(lower_case(records[i].name), i);
  }
  for (const ExtraRecord& record : second) {
    const auto [place, is_new] =
        places.emplace(lower_case(record.name), records.size());
    if (is_new) {
      records.push_back(record);
      continue;
    }
    ExtraRecord& before = records[place->second];
    if (options.replace) {
      before = record;
      continue;
    }
    LOCKSTEP_ASSIGN(const bool is_same, are_equal(before, record));
    if (!is_same) {
      return Error{
          .code = ErrorCode::kInvalidArgument,
          .op = "ckpt.edit",
          .message =
              format("both files have a record '{}'", escape(record.name)),
          .hint = "MergeOptions::replace takes what the second file has",
          .detail = "E_KEY_COLLISION"};
    }
  }
  return records;
}

Status rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    const RewriteOptions& options,
    FileSystem& fs) {
  WriteOptions written;
  LOCKSTEP_ASSIGN(written.format, writer_of(file));
  written.archive_name = options.archive_name;
  written.durable = options.durable;
  written.replace = options.replace;
  written.max_expanded_bytes = options.max_expanded_bytes;
  written.extra_records = file.extra_records;
  written.reuse_checksums = true;
  written.byteorder_record = !file.byteorder.empty();
  written.lock = options.lock;
  const FormatWriter& writer = format_of(file).writer;
  return writer.rewrite != nullptr
             ? writer.rewrite(file, root, output, written, fs)
             : write_checkpoint(output, root, written, fs);
}

} // namespace lockstep::ckpt
