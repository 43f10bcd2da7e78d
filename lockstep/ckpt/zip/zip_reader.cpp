// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_reader.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <libdeflate.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/zip/crc32.h"
#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

using internal::zip_error;
using internal::ZipEntry;

// Bytes that stay in the second-level cache between reading and checksum.
constexpr std::uint64_t kReadBlockBytes = 128 << 10;

Error duplicate(const ZipRecord& first, const ZipRecord& second) {
  const bool same = first.name == second.name;
  return zip_error(
      ErrorCode::kCorrupt,
      same ? "E_DUP_RECORD" : "E_DUP_CASEFOLD",
      format(
          "'{}' appears twice{}: at {} and at {}",
          escape(second.name),
          same ? "" : " but for letter case",
          first.header_offset,
          second.header_offset),
      second.header_offset,
      second.name);
}

// PyTorch looks names up without regard to case and takes one of several.
Status check_duplicates(const std::vector<ZipEntry>& entries, ZipForm form) {
  std::vector<std::pair<std::string, std::size_t>> names;
  names.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].record.name;
    names.emplace_back(form == ZipForm::kRooted ? lower_case(name) : name, i);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(
      names,
      {},
      &std::pair<std::string, std::size_t>::first);
  return twice == names.end() ? Status()
                              : Status(duplicate(
                                    entries[twice->second].record,
                                    entries[std::next(twice)->second].record));
}

bool have_one_root(const std::vector<ZipEntry>& entries) {
  if (entries.empty()) {
    return false;
  }
  const std::string& first = entries.front().record.name;
  const std::string root = first.substr(0, first.find('/') + 1);
  return !root.empty() &&
         std::ranges::all_of(entries, [&root](const ZipEntry& entry) {
           return entry.record.name.starts_with(root);
         });
}

// Cuts the common folder off every name and returns it.
Result<std::string> take_root(
    std::vector<ZipEntry>& entries,
    const Limits& limits) {
  std::string root;
  if (limits.allow_no_root && !have_one_root(entries)) {
    return root;
  }
  for (ZipEntry& entry : entries) {
    std::string& name = entry.record.name;
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_ROOT",
          format("record '{}' is in no folder", escape(name)),
          entry.record.header_offset,
          name,
          "Limits::allow_no_root reads it anyway");
    }
    if (root.empty()) {
      root = name.substr(0, slash);
    }
    if (std::string_view(name).substr(0, slash) != root) {
      return zip_error(
          ErrorCode::kCorrupt,
          "E_ROOTS",
          format(
              "the archive has two top folders; expected '{}/'",
              escape(root)),
          entry.record.header_offset,
          name,
          "'unzip -l FILE' lists both; PyTorch reads an archive of one: save "
          "it again with torch.save");
    }
    name.erase(0, slash + 1);
  }
  return root;
}

CrcState find_crc_state(const std::vector<ZipRecord>& records) {
  bool data = false;
  bool other = false;
  bool any = false;
  for (const ZipRecord& record : records) {
    any = any || record.size != 0;
    (record.name.starts_with("data/") ? data : other) |= record.crc != 0;
  }
  const bool has_data =
      std::ranges::any_of(records, [](const ZipRecord& record) {
        return record.size != 0 && record.name.starts_with("data/");
      });
  if (any && !data && !other) {
    return CrcState::kAbsent;
  }
  return has_data && !data ? CrcState::kAbsentInData : CrcState::kPresent;
}

struct DecompressorDeleter {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};

Error bad_deflate(const ZipRecord& record) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_DEFLATE",
      format(
          "the compressed data is damaged or does not give {} bytes",
          record.size),
      record.data_offset,
      record.name);
}

Error damaged(const ZipRecord& record, std::uint32_t crc) {
  return zip_error(
      ErrorCode::kCorrupt,
      "E_CRC",
      format(
          "the bytes are damaged: CRC-32 expected {:08x}, got {:08x}",
          record.crc,
          crc),
      record.data_offset,
      record.name,
      "restore the file from another copy");
}

} // namespace

Result<ZipReader> ZipReader::open(
    std::shared_ptr<ByteSource> source,
    const Limits& limits,
    ZipForm form) {
  LOCKSTEP_ASSIGN(const auto end, internal::read_zip_end(*source, limits));
  LOCKSTEP_ASSIGN(
      auto entries,
      internal::read_zip_entries(*source, end, limits));
  LOCKSTEP_TRY(internal::check_local_headers(*source, end, entries));
  LOCKSTEP_TRY(internal::check_overlaps(*source, entries));
  std::erase_if(entries, [](const ZipEntry& entry) {
    return internal::is_folder(entry.record);
  });
  LOCKSTEP_TRY(check_duplicates(entries, form));

  ZipReader reader;
  if (form == ZipForm::kRooted) {
    LOCKSTEP_ASSIGN(reader.root_, take_root(entries, limits));
  }
  reader.source_ = std::move(source);
  reader.budget_ = limits.budget;
  reader.records_.reserve(entries.size());
  for (ZipEntry& entry : entries) {
    reader.records_.push_back(std::move(entry.record));
  }
  reader.index_names();
  reader.allow_inflated();
  reader.crc_state_ = find_crc_state(reader.records_);
  if (reader.crc_state_ != CrcState::kPresent) {
    reader.warnings_.push_back(
        {.name = "W_CRC_ABSENT",
         .text = "no CRC stored: damaged weights would go unnoticed"});
  }
  if (end.trailing_bytes != 0) {
    reader.warnings_.push_back(
        {.name = "W_TRAILING",
         .text = counted(
                     end.trailing_bytes,
                     "foreign byte follows",
                     "foreign bytes follow") +
                 " the zip file"});
  }
  return reader;
}

ZipReader ZipReader::recovered(
    std::shared_ptr<ByteSource> source,
    std::vector<ZipRecord> records,
    const Limits& limits) {
  ZipReader reader;
  reader.source_ = std::move(source);
  const std::string first = records.empty() ? "" : records.front().name;
  reader.root_ = first.substr(0, std::min(first.find('/'), first.size()));
  const std::string prefix = reader.root_ + "/";
  for (ZipRecord& record : records) {
    if (record.name.starts_with(prefix)) {
      record.name.erase(0, prefix.size());
    }
    const bool fits = record.method == kStored
                          ? record.size == record.compressed_size
                          : internal::is_within_ratio(record, limits);
    if (fits) {
      reader.records_.push_back(std::move(record));
    }
  }
  // An edit appends the new record and leaves the old one.
  std::set<std::string> known;
  const auto is_replaced = [&known](const ZipRecord& record) {
    return !known.insert(record.name).second;
  };
  std::vector<ZipRecord>& kept = reader.records_;
  const auto last = std::remove_if(kept.rbegin(), kept.rend(), is_replaced);
  kept.erase(kept.begin(), last.base());
  reader.budget_ = limits.budget;
  reader.index_names();
  reader.allow_inflated();
  reader.crc_state_ = find_crc_state(reader.records_);
  return reader;
}

void ZipReader::allow_inflated() {
  std::uint64_t bytes = 0;
  for (const ZipRecord& record : records_) {
    bytes += record.method == kStored ? 0 : record.size;
  }
  if (budget_ != nullptr) {
    budget_->inflates_by(bytes);
  }
}

void ZipReader::index_names() {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    index_.emplace(records_[i].name, i);
  }
}

const ZipRecord* ZipReader::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &records_[found->second];
}

const ZipRecord* ZipReader::find_in_any_case(std::string_view name) const {
  const std::string lower = lower_case(name);
  const auto found =
      std::ranges::find(records_, lower, [](const ZipRecord& record) {
        return lower_case(record.name);
      });
  return found == records_.end() ? nullptr : &*found;
}

bool ZipReader::has_crc(const ZipRecord& record) const noexcept {
  return crc_state_ == CrcState::kPresent ||
         (crc_state_ == CrcState::kAbsentInData &&
          !record.name.starts_with("data/"));
}

Result<ByteSpan> ZipReader::read(
    const ZipRecord& record,
    std::vector<std::byte>& scratch) const {
  if (record.method == 0) {
    return source_->view(record.data_offset, record.size, scratch);
  }
  std::vector<std::byte> packed_scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan packed,
      source_
          ->view(record.data_offset, record.compressed_size, packed_scratch));
  const std::unique_ptr<libdeflate_decompressor, DecompressorDeleter> inflater(
      libdeflate_alloc_decompressor());
  // The ratio was checked on open, so this allocation is bounded by the file;
  // how often it is made is not.
  if (budget_ != nullptr) {
    LOCKSTEP_TRY(budget_->make(record.size));
  }
  scratch.resize(record.size);
  std::size_t used = 0;
  const auto result = libdeflate_deflate_decompress_ex(
      inflater.get(),
      packed.data(),
      packed.size(),
      scratch.data(),
      scratch.size(),
      &used,
      nullptr);
  if (result != LIBDEFLATE_SUCCESS || used != packed.size()) {
    return bad_deflate(record);
  }
  return ByteSpan(scratch);
}

Result<ByteSpan> ZipReader::read_checked(
    const ZipRecord& record,
    std::vector<std::byte>& scratch) const {
  LOCKSTEP_ASSIGN(const ByteSpan bytes, read(record, scratch));
  const std::uint32_t crc = has_crc(record) ? crc32(bytes) : record.crc;
  if (crc != record.crc) {
    return damaged(record, crc);
  }
  return bytes;
}

Status ZipReader::stream(
    const ZipRecord& record,
    bool check_crc,
    const std::function<Status(ByteSpan block)>& visit) const {
  const bool compares = check_crc && has_crc(record);
  // In memory and nothing to compare: all at once.
  const std::uint64_t most =
      compares || !source_->is_stable() ? kReadBlockBytes : record.size;
  std::vector<std::byte> scratch;
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < record.size; at += most) {
    LOCKSTEP_ASSIGN(
        const ByteSpan block,
        source_->view(
            record.data_offset + at,
            std::min(most, record.size - at),
            scratch));
    crc = compares ? crc32(block, crc) : 0;
    LOCKSTEP_TRY(visit(block));
  }
  return compares && crc != record.crc ? Status(damaged(record, crc))
                                       : Status();
}

Status ZipReader::check_crc(const ZipRecord& record) const {
  if (!has_crc(record)) {
    return {};
  }
  if (record.method == 0) {
    return stream(record, true, [](ByteSpan) { return Status(); });
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_TRY(read_checked(record, scratch));
  return {};
}

} // namespace lockstep::ckpt
