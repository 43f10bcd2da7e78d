// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/row_file.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

// Units: bytes of the whole lines within the first `limit` bytes.
Result<std::uint64_t>
end_of_lines(FileSystem& fs, const std::string& path, std::uint64_t limit) {
  constexpr std::uint64_t kBlockBytes = 64 << 10;
  LOCKSTEP_ASSIGN(const auto file, fs.open_read(path));
  std::string block;
  std::uint64_t end = std::min(limit, file->size());
  while (end > 0) {
    block.resize(std::min(end, kBlockBytes));
    const std::uint64_t start = end - block.size();
    LOCKSTEP_TRY(
        file->read_at(start, std::as_writable_bytes(std::span(block))));
    const std::size_t found = block.rfind('\n');
    if (found != std::string::npos) {
      return start + found + 1;
    }
    end = start;
  }
  return end;
}

} // namespace

RowFile::RowFile(std::unique_ptr<GrowingFile> file, std::uint64_t missing_bytes)
    : file_(std::move(file)), missing_bytes_(missing_bytes) {}
RowFile::RowFile(RowFile&& other) noexcept = default;
RowFile& RowFile::operator=(RowFile&& other) noexcept = default;
RowFile::~RowFile() = default;

Result<RowFile> RowFile::open(
    FileSystem& fs,
    const std::string& path,
    std::uint64_t keep_bytes) {
  LOCKSTEP_ASSIGN(const std::string target, fs.resolve(path));
  LOCKSTEP_ASSIGN(auto file, GrowingFile::open(fs, target, [&] {
                    return end_of_lines(fs, target, keep_bytes);
                  }));
  const std::uint64_t missing =
      keep_bytes == kKeepAll ? 0 : keep_bytes - file->size();
  return RowFile(std::move(file), missing);
}

Status RowFile::append(std::string_view line) {
  return file_->append(std::string(line) += '\n');
}

Status RowFile::flush() {
  return file_->flush();
}

Status RowFile::sync() {
  return file_->sync();
}

std::uint64_t RowFile::size() const {
  return file_->size();
}

std::uint64_t RowFile::missing_bytes() const {
  return missing_bytes_;
}

std::uint64_t RowFile::dropped() const {
  return file_->dropped();
}

} // namespace lockstep
