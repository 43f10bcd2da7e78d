// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/archive/pt_archive.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/zip/serialization_id.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt::internal {
namespace {

struct TextRecord {
  std::string_view name = {};
  std::string_view text = {};
};

constexpr std::array kBefore = {
    TextRecord{".format_version", "1"},
    TextRecord{".storage_alignment", "64"},
    TextRecord{"byteorder", "little"}}; // last: it may be left out
constexpr std::array kAfter = {TextRecord{"version", "3\n"}};
constexpr std::string_view kPickleRecord = "data.pkl";
constexpr std::string_view kDataFolder = "data/";
// Read in place of `version` if it is there.
constexpr std::string_view kOldVersion = ".data/version";

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
}

// PyTorch's rule: the file's name without folder and last extension.
std::string default_root(const std::string& path) {
  if (!is_ascii(path)) {
    return "archive";
  }
  const std::string name = path.substr(path.find_last_of("/\\") + 1);
  const std::string root = name.substr(0, name.rfind('.'));
  return root.empty() ? "archive" : root;
}

Result<std::string> checked_root(std::string root) {
  const bool bad =
      root.empty() || root == "." || root == ".." ||
      root.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos ||
      root.size() > 1024 || !is_utf8(root);
  if (!bad) {
    return root;
  }
  return save_error(
      ErrorCode::kInvalidArgument,
      "",
      format("'{}' cannot be the top folder of an archive", escape(root)),
      "set archive_name to a plain name");
}

Status add_storage(
    ZipWriter& zip,
    const std::string& name,
    Storage& storage,
    bool reuse_checksums) {
  const auto stored = reuse_checksums && storage.source
                          ? storage.source->stored()
                          : std::nullopt;
  if (stored) {
    return zip.add_stored(
        name,
        *stored->file,
        {.offset = stored->offset, .size = storage.nbytes, .crc = stored->crc});
  }
  return zip.add(
      name,
      storage.nbytes,
      [&](const BlockVisitor& write) -> Status {
        std::uint64_t given = 0;
        if (storage.nbytes != 0 && storage.source != nullptr) {
          LOCKSTEP_TRY(storage.source->stream([&](ByteSpan block) {
            given += block.size();
            return given <= storage.nbytes ? write(block) : Status();
          }));
        }
        if (given == storage.nbytes) {
          return {};
        }
        return Error{
            .code = ErrorCode::kCorrupt,
            .op = "ckpt.save",
            .message = format(
                "storage {} gave a different number of bytes than it promised; "
                "expected {}, got "
                "{}",
                name,
                storage.nbytes,
                given),
            .record = name,
            .detail = "E_STORAGE_SHORT"};
      });
}

} // namespace

bool is_frame_record(std::string_view name) {
  const std::string lower = lower_case(name);
  const auto has = [&lower](const auto& records) {
    return std::ranges::find(records, lower, &TextRecord::name) !=
           records.end();
  };
  return has(kBefore) || has(kAfter) || lower == kIdRecord ||
         lower == kOldVersion;
}

Status check_extra_records(std::span<const ExtraRecord> records) {
  std::set<std::string> names{std::string(kPickleRecord)};
  for (const ExtraRecord& record : records) {
    const bool is_good = is_record_name(record.name) && is_utf8(record.name) &&
                         !is_frame_record(record.name) &&
                         names.insert(lower_case(record.name)).second;
    if (!is_good) {
      return save_error(
          ErrorCode::kInvalidArgument,
          "E_NAME",
          format(
              "'{}' cannot be the name of a further record",
              escape(record.name, 200)),
          "expected UTF-8 and a name that no other record has");
    }
  }
  return {};
}

std::set<std::string> taken_keys(std::span<const ExtraRecord> records) {
  std::set<std::string> keys;
  for (const ExtraRecord& record : records) {
    const std::string lower = lower_case(record.name);
    if (lower.starts_with(kDataFolder)) { // data/7, data/7/notes.json
      const std::string below = lower.substr(kDataFolder.size());
      keys.insert(below.substr(0, below.find('/')));
    }
  }
  return keys;
}

std::vector<ArchiveRecord> pt_records(
    PickledTree tree,
    std::span<const ExtraRecord> extra_records,
    ByteorderRecord byteorder) {
  std::vector<ArchiveRecord> records;
  const auto add_texts = [&records](std::span<const TextRecord> texts) {
    for (const auto& [name, text] : texts) {
      records.push_back({.name = std::string(name), .text = std::string(text)});
    }
  };
  records.push_back(
      {.name = std::string(kPickleRecord), .text = std::move(tree.pickle)});
  const bool says_order = byteorder == ByteorderRecord::kLittle;
  add_texts(std::span(kBefore).first(kBefore.size() - (says_order ? 0 : 1)));
  for (std::size_t i = 0; i < tree.storages.size(); ++i) {
    records.push_back(
        {.name = std::string(kDataFolder) + tree.keys[i],
         .storage = std::move(tree.storages[i])});
  }
  add_texts(kAfter);
  for (const ExtraRecord& record : extra_records) {
    records.push_back({.name = record.name, .storage = record.content});
  }
  return records;
}

Result<std::uint64_t> write_archive(
    WritableFile& file,
    const std::string& root,
    std::span<const ArchiveRecord> records,
    bool reuse_checksums) {
  ZipWriter zip(file, root);
  for (const ArchiveRecord& record : records) {
    LOCKSTEP_TRY(
        record.storage
            ? add_storage(zip, record.name, *record.storage, reuse_checksums)
            : zip.add(record.name, as_byte_span(record.text)));
  }
  LOCKSTEP_TRY(zip.finish());
  return zip.position();
}

std::uint64_t archive_bytes(
    const std::string& root,
    std::span<const ArchiveRecord> records) {
  std::vector<PlannedRecord> planned;
  planned.reserve(records.size());
  for (const ArchiveRecord& record : records) {
    planned.push_back(
        {record.name,
         record.storage ? record.storage->nbytes : record.text.size()});
  }
  return zip_file_bytes(root, planned);
}

Status save_archive(
    const std::string& path,
    Result<std::vector<ArchiveRecord>> records,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(const auto all, in_file(std::move(records), path));
  LOCKSTEP_ASSIGN(
      const std::string root,
      checked_root(
          options.archive_name.empty() ? default_root(path)
                                       : options.archive_name));
  return write_file_atomically(
      fs,
      path,
      [&](WritableFile& file) -> Status {
        LOCKSTEP_TRY(write_archive(file, root, all, options.reuse_checksums));
        return {};
      },
      {.expected_bytes = archive_bytes(root, all),
       .durable = options.durable,
       .reserve = !options.reuse_checksums,
       .replace = options.replace});
}

} // namespace lockstep::ckpt::internal
