// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/header_window.h"

#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

// Copying so many bytes costs about as much as a further system call.
constexpr std::uint64_t kNear = 4096;
constexpr std::uint64_t kMost = 8192;

} // namespace

Result<ByteSpan> HeaderWindow::view(
    std::size_t index,
    std::uint64_t offset,
    std::uint64_t length) {
  const bool is_there = offset >= start_ && offset - start_ <= bytes_.size() &&
                        length <= bytes_.size() - (offset - start_);
  if (!is_there) {
    const std::uint64_t end =
        source_.is_stable() ? offset + length
                            : end_of_neighbours(index, offset, offset + length);
    LOCKSTEP_ASSIGN(bytes_, source_.view(offset, end - offset, scratch_));
    start_ = offset;
  }
  return bytes_.subspan(offset - start_, length);
}

std::uint64_t HeaderWindow::end_of_neighbours(
    std::size_t index,
    std::uint64_t offset,
    std::uint64_t end) const {
  for (const ZipEntry& next : entries_.subspan(index + 1)) {
    const std::uint64_t start = next.record.header_offset;
    const std::uint64_t next_end =
        start + kStructBytes<LocalHeader> + next.record.name.size();
    if (start < end || start - end > kNear || next_end - offset > kMost ||
        next_end > limit_) {
      break;
    }
    end = next_end;
  }
  return end;
}

} // namespace lockstep::ckpt::internal
