// SPDX-License-Identifier: BSD-3-Clause
//
// Local headers lie between the payloads, one system call apart from each
// other. Those of small records are neighbours: they are read together.
//   HeaderWindow headers(source, entries, directory_offset);
//   auto bytes = headers.view(i, offset, length);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/ckpt/zip/zip_directory.h"

namespace lockstep::ckpt::internal {

/// Reads the headers of `entries`, asked for in their order, from `source`.
class HeaderWindow {
 public:
  /// Nothing is read from `limit` on. Units: bytes.
  HeaderWindow(
      ByteSource& source,
      std::span<const ZipEntry> entries,
      std::uint64_t limit)
      : source_(source), entries_(entries), limit_(limit) {}

  /// Bytes [offset, offset + length) before the limit, with the header of
  /// `entries[index]`. Ownership: until the next call. Errors: kIo.
  Result<ByteSpan>
  view(std::size_t index, std::uint64_t offset, std::uint64_t length);

 private:
  [[nodiscard]] std::uint64_t end_of_neighbours(
      std::size_t index,
      std::uint64_t offset,
      std::uint64_t end) const;

  ByteSource& source_;
  std::span<const ZipEntry> entries_;
  std::uint64_t limit_;
  std::uint64_t start_ = 0;
  ByteSpan bytes_;
  std::vector<std::byte> scratch_;
};

} // namespace lockstep::ckpt::internal
