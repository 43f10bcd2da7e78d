// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/rewrite.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/pickle/pickle_writer.h"
#include "lockstep/ckpt/zip/zip_append.h"

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

// True if each storage of the pickle is one of the file's, under its key.
bool are_of(
    const Checkpoint& file,
    const std::vector<std::shared_ptr<Storage>>& storages) {
  std::unordered_set<const Storage*> own;
  for (const auto& storage : file.storages) {
    own.insert(storage.get());
  }
  return std::ranges::all_of(storages, [&own](const auto& storage) {
    return own.contains(storage.get());
  });
}

Error in_file(Error error, const std::string& path) {
  if (error.path.empty()) {
    error.path = path;
  }
  return error;
}

// Bytes appended; nothing if the tree needs records that are not there.
Result<std::optional<std::uint64_t>> append(
    const Checkpoint& file,
    const Value& root,
    const std::string& path,
    FileSystem& fs) {
  auto tree = write_pickle(root, {.keep_storage_keys = true});
  if (!tree) {
    return in_file(std::move(tree).error(), path);
  }
  if (!are_of(file, tree->storages)) {
    return std::optional<std::uint64_t>();
  }
  const NewRecord record{.name = "data.pkl", .bytes = std::move(tree->pickle)};
  auto grown =
      replace_records(fs, path, {&record, 1}, {.file_bytes = file.file_bytes});
  if (grown) {
    return std::optional(*grown);
  }
  if (grown.error().detail == "E_NOT_IN_PLACE") {
    return std::optional<std::uint64_t>();
  }
  return in_file(std::move(grown).error(), path);
}

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
      .message = format("files of the format '{}' are only read", file.format),
      .hint = "'lockstep ckpt convert' writes another format",
      .path = input,
      .detail = "E_NO_WRITER"};
}

bool is_same_file(const std::string& a, const std::string& b, FileSystem& fs) {
  const auto first = fs.resolve(a);
  const auto second = fs.resolve(b);
  const auto normal = [](const std::string& path) {
    return std::filesystem::path(path).lexically_normal();
  };
  return first && second && normal(*first) == normal(*second);
}

Result<RewriteReport> rewrite(
    const Checkpoint& file,
    const Value& root,
    const std::string& output,
    const RewriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(const std::string writer, writer_of(file, options.input));
  const bool in_place =
      !options.input.empty() && is_same_file(options.input, output, fs);
  if (in_place && options.may_append && file.format == "zip") {
    LOCKSTEP_ASSIGN(const auto grown, append(file, root, output, fs));
    if (grown) {
      return RewriteReport{.method = RewriteMethod::kAppended, .bytes = *grown};
    }
  }
  LOCKSTEP_TRY(save(
      output,
      root,
      {.format = writer,
       .replace = options.replace || in_place,
       .reuse_checksums = true},
      fs));
  LOCKSTEP_ASSIGN(const FileInfo info, fs.stat(output));
  return RewriteReport{.method = RewriteMethod::kWritten, .bytes = info.size};
}

} // namespace lockstep::ckpt
