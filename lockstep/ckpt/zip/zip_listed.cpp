// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_listed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "lockstep/ckpt/zip/zip_directory.h"
#include "lockstep/ckpt/zip/zip_recover.h"
#include "lockstep/ckpt/zip/zip_structs.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kPickle = "/data.pkl";

// By the offset of their local headers.
using Directory = std::map<std::uint64_t, ZipRecord>;

// Nothing if the file does not end with a directory.
std::optional<Directory> read_directory(
    ByteSource& source,
    const Limits& limits) {
  const auto end = internal::read_zip_end(source, limits);
  const auto entries =
      end ? internal::read_zip_entries(source, *end, limits) : end.error();
  if (!entries) {
    return std::nullopt;
  }
  Directory directory;
  for (const internal::ZipEntry& entry : *entries) {
    if (!internal::is_folder(entry.record)) {
      directory.emplace(entry.record.header_offset, entry.record);
    }
  }
  return directory;
}

bool lists(const Directory& directory, const ZipRecord& record) {
  const auto entry = directory.find(record.header_offset);
  return entry != directory.end() && entry->second.crc == record.crc &&
         entry->second.size == record.size;
}

// A sound pickle that the directory does not list, and none that it lists.
bool is_of_another_file(
    const Directory& directory,
    const std::shared_ptr<ByteSource>& source,
    const std::vector<ZipRecord>& records,
    const Limits& limits) {
  bool is_other = false;
  for (const ZipRecord& record : records) {
    if (!record.name.ends_with(kPickle)) {
      continue;
    }
    const ZipReader zip = ZipReader::recovered(source, {record}, limits);
    if (zip.records().empty() || !zip.check_crc(zip.records().front())) {
      continue;
    }
    if (lists(directory, record)) {
      return false;
    }
    is_other = true;
  }
  return is_other;
}

// A newer file lies over the front of an older one: up to the last record that
// the older one's directory does not know, all is of the newer.
void take_listed_off_the_end(const Directory& directory, ListedRecords& found) {
  std::vector<ZipRecord>& records = found.records;
  while (!records.empty() && lists(directory, records.back())) {
    found.foreign.push_back(std::move(records.back().name));
    records.pop_back();
  }
  std::ranges::reverse(found.foreign);
}

// The folder of most records: a wrong letter may be in that of some.
std::string root_of(const Directory& directory) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [offset, record] : directory) {
    ++counts[record.name.substr(0, record.name.find('/') + 1)];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& row) {
    return row.second;
  });
  return most == counts.end() ? "" : most->first;
}

// Whether a local header's name may be that of the value or of a tensor.
bool is_value(const std::string& name, const std::string& root) {
  return name == root + "data.pkl" || name.starts_with(root + "data/");
}

struct Located {
  std::vector<ZipRecord> records = {};
  // Under the names of their local headers.
  std::vector<ZipRecord> others = {};
  std::uint64_t end = 0; // records that overlap would be read many times
};

// By the local header at `offset`, if there is one.
Status add_located(
    ByteSource& source,
    std::uint64_t offset,
    const ZipRecord& entry,
    const std::string& root,
    Located& found) {
  LOCKSTEP_ASSIGN(const auto local, read_local_record(source, offset));
  if (!local || offset < found.end ||
      entry.compressed_size > source.size() - local->data_offset) {
    return {};
  }
  ZipRecord record = entry;
  record.data_offset = local->data_offset;
  found.end = record.data_offset + record.compressed_size;
  if (local->name != record.name && is_value(local->name, root)) {
    found.others.push_back(record);
    found.others.back().name = local->name;
  }
  if (record.name.starts_with(root)) {
    found.records.push_back(std::move(record));
  }
  return {};
}

// Each entry with its payload's place by the local header. Of two names both
// count if one may be that of a tensor: the pickle tells which is right.
Result<std::vector<ZipRecord>> locate(
    ByteSource& source,
    const Directory& directory) {
  const std::string root = root_of(directory);
  Located found;
  for (const auto& [offset, entry] : directory) {
    LOCKSTEP_TRY(add_located(source, offset, entry, root, found));
  }
  // Of equal names the last one counts.
  auto& [records, others, end] = found;
  records.insert(records.begin(), others.begin(), others.end());
  return std::move(records);
}

template <class Records>
void add_names(const Records& records, std::vector<std::string>& names) {
  for (const auto& record : records) {
    names.push_back(record.name);
  }
}

} // namespace

Result<ListedRecords> recover_listed_records(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  LOCKSTEP_ASSIGN(auto headers, recover_zip_records(*source, limits));
  ListedRecords found{.records = std::move(headers.records)};
  const auto directory = read_directory(*source, limits);
  if (directory &&
      !is_of_another_file(*directory, source, found.records, limits)) {
    LOCKSTEP_ASSIGN(found.records, locate(*source, *directory));
    add_names(std::views::values(*directory), found.names);
    found.has_directory = true;
    return found;
  }
  if (directory) {
    take_listed_off_the_end(*directory, found);
  }
  add_names(found.records, found.names);
  add_names(headers.lost, found.names);
  return found;
}

Result<std::uint64_t> bytes_before_archive(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits) {
  constexpr std::uint64_t kLocator = kStructBytes<End64Locator>;
  constexpr std::uint64_t kTail =
      kStructBytes<End64Record> + kLocator + kStructBytes<EndRecord>;
  if (source->size() < kTail) {
    return std::uint64_t{0};
  }
  const std::uint64_t tail_offset = source->size() - kTail;
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan tail,
      source->view(tail_offset, kTail, scratch));
  const auto end = read_struct<EndRecord>(tail.last(kStructBytes<EndRecord>));
  if (!end) {
    return std::uint64_t{0};
  }
  const auto locator =
      read_struct<End64Locator>(tail.subspan(kStructBytes<End64Record>));
  // Where something should be, and where it says that it is.
  std::uint64_t place = tail_offset;
  std::uint64_t claim = locator ? locator->end64_offset : 0;
  if (!locator) {
    place = source->size() - kStructBytes<EndRecord>;
    claim = std::uint64_t{end->directory_offset} + end->directory_bytes;
  }
  if (claim >= place) {
    return std::uint64_t{0};
  }
  const std::uint64_t before = place - claim;
  const auto archive = slice_source(source, before, source->size() - before);
  const auto directory = read_directory(*archive, limits);
  return directory && !directory->empty() ? before : 0;
}

} // namespace lockstep::ckpt
