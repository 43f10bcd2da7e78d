// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/fs.h"

#include <algorithm>

namespace lockstep {

Status WritableFile::copy_from(
    ReadableFile& source,
    std::uint64_t offset,
    std::uint64_t length) {
  constexpr std::uint64_t kBlockBytes = 1 << 20;
  std::vector<std::byte> block(std::min(length, kBlockBytes));
  while (length > 0) {
    const auto part = std::span(block).first(std::min(length, kBlockBytes));
    LOCKSTEP_TRY(source.read_at(offset, part));
    LOCKSTEP_TRY(write(part));
    offset += part.size();
    length -= part.size();
  }
  return {};
}

Result<std::string> read_text(FileSystem& fs, const std::string& path) {
  LOCKSTEP_ASSIGN(const auto file, fs.open_read(path));
  std::string text(file->size(), '\0');
  LOCKSTEP_TRY(file->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string parent_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

} // namespace lockstep
