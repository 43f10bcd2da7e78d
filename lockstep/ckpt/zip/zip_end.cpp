// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt::internal {
namespace {

// A comment and PyTorch's tolerance for trailing bytes both end at 64 KiB.
constexpr std::uint64_t kSearchBytes = 0xFFFF + kStructBytes<EndRecord>;
constexpr std::uint64_t kMagicBytes = sizeof(LocalHeader::kMagic);

Error no_end(std::uint64_t size) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_ZIP_NO_EOCD",
      "the zip directory at the end of the file is missing: the file was "
      "truncated or is still being written",
      size,
      {},
      "compare the size with the original and copy the file again");
}

Error no_magic(std::uint64_t offset) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_PREFIX",
      "the file does not start with a zip record; expected 'PK\\x03\\x04'",
      offset);
}

// `end` is where the end record is: an archive without records begins there.
Status check_magic(ByteSource& source, const Result<std::uint64_t>& end) {
  std::vector<std::byte> scratch;
  const auto length = std::min(source.size(), kMagicBytes);
  LOCKSTEP_ASSIGN(const ByteSpan head, source.view(0, length, scratch));
  if (head.empty()) {
    return zip_error(ErrorCode::kCorrupt, "E_EMPTY", "the file is empty", 0);
  }
  const std::size_t equal = zip_magic_prefix(head);
  if (equal < head.size()) {
    return end && *end == 0 ? Status() : Status(no_magic(equal));
  }
  if (head.size() < kMagicBytes) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        format("zip magic truncated after {} bytes", head.size()),
        head.size());
  }
  return {};
}

struct Candidates {
  // Offsets of end records whose comment ends at the end of the file, and of
  // those that end before it.
  std::vector<std::uint64_t> exact = {};
  std::vector<std::uint64_t> early = {};
  // The last one of all, also if its comment does not fit.
  std::uint64_t last = 0;
};

Candidates find_candidates(ByteSpan tail, std::uint64_t tail_offset) {
  Candidates found;
  const std::string magic = magic_of<EndRecord>();
  const std::string_view text = as_text(tail);
  for (std::size_t at = text.find(magic); at < text.size();
       at = text.find(magic, at + 1)) {
    const auto record = read_struct<EndRecord>(tail.subspan(at));
    if (!record) {
      break;
    }
    const std::uint64_t end =
        at + kStructBytes<EndRecord> + record->comment_bytes;
    if (end == tail.size()) {
      found.exact.push_back(tail_offset + at);
    } else if (end < tail.size()) {
      found.early.push_back(tail_offset + at);
    }
    found.last = tail_offset + at;
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

// The end record at `offset`, which must be there.
Result<EndRecord> end_at(ByteSource& source, std::uint64_t offset) {
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(offset, kStructBytes<EndRecord>, scratch));
  const auto record = read_struct<EndRecord>(bytes);
  return record ? Result(*record) : no_end(source.size());
}

// The one end record that counts. Other readers take the last one, even in the
// comment of another: a second one behind the first is an attack.
Result<std::uint64_t> choose_end(ByteSource& source) {
  LOCKSTEP_ASSIGN(Candidates found, candidates_in(source, kSearchBytes));
  if (found.exact.empty()) {
    LOCKSTEP_ASSIGN(found, candidates_in(source, 2 * kSearchBytes));
  }
  const auto& pool = found.exact.empty() ? found.early : found.exact;
  if (pool.empty()) {
    return no_end(source.size());
  }
  const std::uint64_t chosen = pool.front();
  if (found.last != chosen) {
    return zip_error(
        ErrorCode::kCorrupt,
        "E_ZIP_AMBIGUOUS",
        format(
            "two records claim to be the end of the zip file: at {} and at {}",
            chosen,
            found.last),
        found.last);
  }
  return chosen;
}

Error bad_end(std::uint64_t offset, std::string_view what) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_BOUNDS",
      format("the end record of the zip file is wrong: {}", what),
      offset);
}

// Of both end records.
template <class End>
Status check_one_disk(const End& end, std::uint64_t offset) {
  return end.disk == 0 && end.directory_disk == 0 &&
                 end.count_on_disk == end.count
             ? Status()
             : Status(bad_end(
                   offset,
                   "archives that span several disks are not supported"));
}

struct Found64 {
  ZipEnd end = {};
  std::uint64_t offset = 0;
};

// The zip64 end record that the locator before `end_offset` names, if any.
Result<std::optional<Found64>> read_end64(
    ByteSource& source,
    std::uint64_t end_offset) {
  if (end_offset < kStructBytes<End64Locator>) {
    return std::optional<Found64>();
  }
  const std::uint64_t locator_offset = end_offset - kStructBytes<End64Locator>;
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan locator_bytes,
      source.view(locator_offset, kStructBytes<End64Locator>, scratch));
  const auto locator = read_struct<End64Locator>(locator_bytes);
  if (!locator) {
    return std::optional<Found64>();
  }
  if (locator->disk != 0 || locator->disks > 1) {
    return bad_end(
        locator_offset,
        "archives that span several disks are not supported");
  }
  // Python's zipfile reads the bytes right before the locator and never looks
  // at the offset in it: an extended record could mean two things.
  const std::uint64_t offset = locator->end64_offset;
  if (offset > locator_offset ||
      locator_offset - offset != kStructBytes<End64Record>) {
    return bad_end(
        locator_offset,
        "the zip64 locator does not point at the record before it");
  }
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(offset, kStructBytes<End64Record>, scratch));
  const auto end = read_struct<End64Record>(bytes);
  if (!end ||
      end->bytes != kStructBytes<End64Record> - End64Record::kUncounted) {
    return bad_end(offset, "no zip64 end record where the locator points");
  }
  LOCKSTEP_TRY(check_one_disk(*end, offset));
  return std::optional(Found64{
      .end =
          {.count = end->count,
           .directory_offset = end->directory_offset,
           .directory_bytes = end->directory_bytes},
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
  // Python's zipfile takes the bytes in front of the end record for the
  // directory, and all offsets for too small where it is said to lie elsewhere;
  // others believe the offset. A file that means two things is refused, and the
  // entry that Python would read tells which mistake was made.
  const std::uint64_t python_offset = tail_offset - end.directory_bytes;
  const std::uint64_t shift = python_offset - end.directory_offset;
  if (shift == 0) {
    return {};
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan entry,
      source.view(
          python_offset,
          std::min(end.directory_bytes, kStructBytes<CentralHeader>),
          scratch));
  if (!read_struct<CentralHeader>(entry)) {
    return bad_end(tail_offset, "bytes lie between the directory and it");
  }
  return zip_error(
      ErrorCode::kCorrupt,
      "E_PREFIX",
      format(
          "{} before the zip file",
          counted(shift, "foreign byte lies", "foreign bytes lie")),
      0);
}

} // namespace

Result<ZipEnd> read_zip_end(ByteSource& source, const Limits& limits) {
  // What looks like the end of an archive may be all over the file.
  LOCKSTEP_TRY(budget_of(limits, source.size())
                   ->read(std::min(source.size(), 2 * kSearchBytes)));
  auto chosen = choose_end(source);
  LOCKSTEP_TRY(check_magic(source, chosen));
  LOCKSTEP_ASSIGN(const std::uint64_t offset, std::move(chosen));
  LOCKSTEP_ASSIGN(const EndRecord record, end_at(source, offset));
  ZipEnd end{
      .count = record.count,
      .directory_offset = record.directory_offset,
      .directory_bytes = record.directory_bytes};
  LOCKSTEP_TRY(check_one_disk(record, offset));
  std::uint64_t tail_offset = offset;
  LOCKSTEP_ASSIGN(const auto wide, read_end64(source, offset));
  if (wide) {
    if (!agrees(end.count, kZip64Count, wide->end.count) ||
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
  end.trailing_bytes =
      source.size() - offset - kStructBytes<EndRecord> - record.comment_bytes;
  LOCKSTEP_TRY(check_position(source, end, tail_offset));
  return end;
}

} // namespace lockstep::ckpt::internal
