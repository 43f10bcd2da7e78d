// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_layout.h"
#include "lockstep/ckpt/zip/zip_records.h"

namespace lockstep::ckpt::internal {
namespace {

// A comment and PyTorch's tolerance for trailing bytes both end at 64 KiB.
constexpr std::uint64_t kSearchBytes = 0xFFFF + kEndBytes;
constexpr std::array<unsigned char, 4> kZipMagic{'P', 'K', 3, 4};
constexpr std::string_view kEndText = "PK\x05\x06";

Error no_end(std::uint64_t size) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_ZIP_NO_EOCD",
      "the zip directory at the end of the file is missing: the file was cut "
      "or is still being written",
      size,
      {},
      "compare the size with the original and copy the file again");
}

Status check_magic(ByteSource& source) {
  std::vector<std::byte> scratch;
  const auto length = std::min<std::uint64_t>(source.size(), 4);
  LOCKSTEP_ASSIGN(const ByteSpan head, source.view(0, length, scratch));
  if (head.empty()) {
    return zip_error(ErrorCode::kCorrupt, "E_EMPTY", "the file is empty", 0);
  }
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (static_cast<unsigned char>(head[i]) != kZipMagic.at(i)) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_PREFIX",
          "the file does not start with a zip record; expected 'PK\\x03\\x04'",
          i);
    }
  }
  if (head.size() < kZipMagic.size()) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        format("zip magic cut at {}", head.size()),
        head.size());
  }
  return {};
}

struct Candidates {
  // Offsets of end records whose comment ends at the end of the file, and of
  // those that end before it.
  std::vector<std::uint64_t> exact = {};
  std::vector<std::uint64_t> early = {};
};

Candidates find_candidates(ByteSpan tail, std::uint64_t tail_offset) {
  Candidates found;
  const std::string_view text = as_text(tail);
  for (std::size_t at = text.find(kEndText); at < tail.size();
       at = text.find(kEndText, at + 1)) {
    if (tail.size() - at < kEndBytes) {
      break;
    }
    const std::uint64_t end =
        at + kEndBytes + read_le<std::uint16_t>(tail, at + 20);
    if (end == tail.size()) {
      found.exact.push_back(tail_offset + at);
    } else if (end < tail.size()) {
      found.early.push_back(tail_offset + at);
    }
  }
  return found;
}

// The candidates in the last `most` bytes.
Result<Candidates> candidates_in(ByteSource& source, std::uint64_t most) {
  const std::uint64_t length = std::min(source.size(), most);
  const std::uint64_t offset = source.size() - length;
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(const ByteSpan tail, source.view(offset, length, scratch));
  return find_candidates(tail, offset);
}

// True if the last of these end records is one that an edit in place has moved
// (zip_append.h), and they all name the same directory.
Result<bool> is_moved_end(
    ByteSource& source,
    const std::vector<std::uint64_t>& ends) {
  constexpr std::uint64_t kFirstField = 8; // counts, size and offset
  constexpr std::uint64_t kFieldBytes = 12;
  constexpr std::uint64_t kBefore = kEnd64Bytes + kLocatorBytes;
  if (ends.back() < kBefore) {
    return false;
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan wide,
      source.view(ends.back() - kBefore, kEnd64Bytes, scratch));
  bool same = read_le<std::uint32_t>(wide, 0) == kEnd64Magic &&
              read_le<std::uint16_t>(wide, 12) == kMadeByEdit;
  std::vector<std::byte> last_scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan last,
      source.view(ends.back() + kFirstField, kFieldBytes, last_scratch));
  for (const std::uint64_t end : ends) {
    LOCKSTEP_ASSIGN(
        const ByteSpan fields,
        source.view(end + kFirstField, kFieldBytes, scratch));
    same = same && std::ranges::equal(fields, last);
  }
  return same;
}

// The one end record that counts; two equally good ones are an attack, unless
// a power cut tore an edit in place.
Result<std::uint64_t> choose_end(ByteSource& source) {
  LOCKSTEP_ASSIGN(Candidates found, candidates_in(source, kSearchBytes));
  if (found.exact.empty()) {
    LOCKSTEP_ASSIGN(found, candidates_in(source, 2 * kSearchBytes));
  }
  const auto& pool = found.exact.empty() ? found.early : found.exact;
  if (pool.empty()) {
    return no_end(source.size());
  }
  LOCKSTEP_ASSIGN(
      const bool is_edit,
      pool.size() > 1 ? is_moved_end(source, pool) : false);
  if (pool.size() > 1 && !is_edit) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_ZIP_AMBIGUOUS",
        format(
            "two records claim to be the end of the zip file: at {} and at {}",
            pool[pool.size() - 2],
            pool.back()),
        pool.back());
  }
  return pool.back();
}

Error bad_end(std::uint64_t offset, std::string_view what) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_BOUNDS",
      format("the end record of the zip file is wrong: {}", what),
      offset);
}

struct Found64 {
  ZipEnd end = {};
  std::uint64_t offset = 0;
};

// The zip64 end record that the locator before `end_offset` names, if any.
Result<std::optional<Found64>> read_end64(
    ByteSource& source,
    std::uint64_t end_offset) {
  if (end_offset < kLocatorBytes) {
    return std::optional<Found64>();
  }
  const std::uint64_t locator_offset = end_offset - kLocatorBytes;
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan locator,
      source.view(locator_offset, kLocatorBytes, scratch));
  if (read_le<std::uint32_t>(locator, 0) != kLocatorMagic) {
    return std::optional<Found64>();
  }
  const auto offset = read_le<std::uint64_t>(locator, 8);
  if (offset > locator_offset || locator_offset - offset < kEnd64Bytes) {
    return bad_end(locator_offset, "the zip64 locator points outside");
  }
  std::vector<std::byte> record_scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(offset, kEnd64Bytes, record_scratch));
  if (read_le<std::uint32_t>(bytes, 0) != kEnd64Magic ||
      read_le<std::uint64_t>(bytes, 4) != locator_offset - offset - 12) {
    return bad_end(offset, "no zip64 end record where the locator points");
  }
  if (read_le<std::uint32_t>(bytes, 16) != 0 ||
      read_le<std::uint64_t>(bytes, 24) != read_le<std::uint64_t>(bytes, 32)) {
    return bad_end(offset, "archives of several disks are not read");
  }
  return std::optional(Found64{
      .end =
          {.count = read_le<std::uint64_t>(bytes, 32),
           .directory_offset = read_le<std::uint64_t>(bytes, 48),
           .directory_bytes = read_le<std::uint64_t>(bytes, 40),
           .is_unfinished_edit =
               read_le<std::uint16_t>(bytes, 12) == kMadeByEdit},
      .offset = offset});
}

// A 32-bit field repeats the 64-bit one, or holds all ones.
bool agrees(std::uint64_t narrow, std::uint64_t all_ones, std::uint64_t wide) {
  return narrow == all_ones || narrow == wide;
}

Status check_position(
    ByteSource& source,
    const ZipEnd& end,
    std::uint64_t tail_offset) {
  const bool fits = end.directory_bytes <= tail_offset &&
                    end.directory_offset <= tail_offset - end.directory_bytes;
  if (!fits) {
    return bad_end(tail_offset, "the directory does not fit before it");
  }
  const std::uint64_t shift =
      tail_offset - end.directory_bytes - end.directory_offset;
  // The 64-bit offset is absolute, so PyTorch does not mind the gap either.
  if (shift == 0 || end.is_unfinished_edit) {
    return {};
  }
  std::vector<std::byte> scratch;
  const std::uint64_t shifted = end.directory_offset + shift;
  if (end.directory_bytes >= 4) {
    LOCKSTEP_ASSIGN(const ByteSpan magic, source.view(shifted, 4, scratch));
    if (read_le<std::uint32_t>(magic, 0) == kCentralMagic) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_PREFIX",
          format(
              "{} before the zip file",
              counted(shift, "foreign byte lies", "foreign bytes lie")),
          0);
    }
  }
  return bad_end(tail_offset, "bytes lie between the directory and it");
}

} // namespace

Result<ZipEnd> read_zip_end(ByteSource& source) {
  LOCKSTEP_TRY(check_magic(source));
  LOCKSTEP_ASSIGN(const std::uint64_t offset, choose_end(source));
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(offset, kEndBytes, scratch));
  ZipEnd end{
      .count = read_le<std::uint16_t>(bytes, 10),
      .directory_offset = read_le<std::uint32_t>(bytes, 16),
      .directory_bytes = read_le<std::uint32_t>(bytes, 12)};
  if (read_le<std::uint16_t>(bytes, 4) != 0 ||
      read_le<std::uint16_t>(bytes, 8) != end.count) {
    return bad_end(offset, "archives of several disks are not read");
  }
  const std::uint64_t trailing =
      source.size() - offset - kEndBytes - read_le<std::uint16_t>(bytes, 20);
  std::uint64_t tail_offset = offset;
  LOCKSTEP_ASSIGN(const auto wide, read_end64(source, offset));
  if (wide) {
    if (!agrees(end.count, 0xFFFF, wide->end.count) ||
        !agrees(
            end.directory_bytes,
            kZip64Threshold,
            wide->end.directory_bytes) ||
        !agrees(
            end.directory_offset,
            kZip64Threshold,
            wide->end.directory_offset)) {
      return bad_end(offset, "its 32-bit fields contradict the 64-bit ones");
    }
    end = wide->end;
    tail_offset = wide->offset;
  }
  end.trailing_bytes = trailing;
  end.comment_bytes = read_le<std::uint16_t>(bytes, 20);
  LOCKSTEP_TRY(check_position(source, end, tail_offset));
  return end;
}

} // namespace lockstep::ckpt::internal
