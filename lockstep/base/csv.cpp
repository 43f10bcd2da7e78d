// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/csv.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

std::string csv_field(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) {
    return field;
  }
  std::string quoted = "\"";
  for (const char c : field) {
    quoted.append(c == '"' ? 2 : 1, c);
  }
  return quoted + '"';
}

} // namespace

std::string csv_row(std::span<const std::string> fields) {
  std::vector<std::string> quoted(fields.size());
  std::ranges::transform(fields, quoted.begin(), csv_field);
  return join(quoted, ",") + "\n";
}

CsvFile::CsvFile(
    std::unique_ptr<WritableFile> file,
    std::string path,
    std::size_t columns,
    std::uint64_t size)
    : file_(std::move(file)),
      path_(std::move(path)),
      columns_(columns),
      size_(size) {}

Result<CsvFile> CsvFile::create(
    FileSystem& fs,
    const std::string& path,
    std::vector<std::string> columns) {
  LOCKSTEP_ASSIGN(auto file, fs.append(path));
  LOCKSTEP_TRY(fs.truncate(path, 0));
  CsvFile table(std::move(file), path, columns.size(), 0);
  LOCKSTEP_TRY(table.write(csv_row(columns)));
  return table;
}

Result<CsvFile> CsvFile::resume(
    FileSystem& fs,
    const std::string& path,
    std::vector<std::string> columns,
    std::uint64_t keep_bytes) {
  auto old = read_text(fs, path);
  if (!old && old.error().code == ErrorCode::kNotFound) {
    return create(fs, path, std::move(columns));
  }
  LOCKSTEP_TRY(old);
  const std::string header = csv_row(columns);
  if (!old->starts_with(header) || keep_bytes < header.size() ||
      keep_bytes > old->size()) {
    return Error{
        .code = ErrorCode::kMismatch,
        .op = "csv.resume",
        .message = format(
            "the table is not the one of the checkpoint; expected {} bytes and "
            "the header '{}', got {} bytes and '{}'",
            keep_bytes,
            escape(header.substr(0, header.size() - 1)),
            old->size(),
            escape(old->substr(0, old->find('\n')))),
        .hint = "move the file away to start a new table",
        .path = path};
  }
  LOCKSTEP_TRY(fs.truncate(path, keep_bytes));
  LOCKSTEP_ASSIGN(auto file, fs.append(path));
  return CsvFile(std::move(file), path, columns.size(), keep_bytes);
}

Status CsvFile::append(std::span<const std::string> fields) {
  if (fields.size() != columns_) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "csv.append",
        .message =
            format("expected {} fields, got {}", columns_, fields.size()),
        .path = path_};
  }
  return write(csv_row(fields));
}

Status CsvFile::append(std::initializer_list<std::string> fields) {
  return append(std::span(fields.begin(), fields.size()));
}

Status CsvFile::write(const std::string& text) {
  LOCKSTEP_TRY(file_->write(as_byte_span(text)));
  size_ += text.size();
  return {};
}

} // namespace lockstep
