// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/pytorch/pt_storage.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/value_walk.h"
#include "lockstep/ckpt/formats/archive/record_source.h"
#include "lockstep/ckpt/pickle/storage_id.h"

namespace lockstep::ckpt::internal {
namespace {

// A record of the archive, read and checked when first asked for.
class RecordSource final : public StorageSource {
 public:
  RecordSource(
      std::shared_ptr<const ZipReader> zip,
      const ZipRecord& record,
      std::uint64_t nbytes,
      bool check_crc)
      : zip_(std::move(zip)),
        record_(&record),
        nbytes_(nbytes),
        check_crc_(check_crc) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (!is_loaded_) {
      LOCKSTEP_TRY(read());
      is_loaded_ = true;
    }
    return bytes_;
  }

  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    if (record_->method != 0 || zip_->source()->is_stable()) {
      return StorageSource::view(offset, length, scratch);
    }
    LOCKSTEP_CHECK(offset <= nbytes_ && length <= nbytes_ - offset);
    {
      const std::scoped_lock lock(mutex_);
      LOCKSTEP_TRY(check());
    }
    return zip_->source()->view(record_->data_offset + offset, length, scratch);
  }

  Status stream(const BlockVisitor& visit) override {
    if (record_->method != 0) {
      return StorageSource::stream(visit);
    }
    bool compares = false;
    {
      const std::scoped_lock lock(mutex_);
      compares = check_crc_;
    }
    // A longer record was warned about; its CRC covers all of it.
    std::uint64_t left = nbytes_;
    return zip_->stream(*record_, compares, [&](ByteSpan block) {
      const auto part =
          block.first(std::min<std::uint64_t>(block.size(), left));
      left -= part.size();
      return part.empty() ? Status() : visit(part);
    });
  }

  [[nodiscard]] std::optional<Stored> stored() const override {
    ReadableFile* file = zip_->source()->file();
    const bool is_plain = file != nullptr && record_->method == 0 &&
                          record_->size == nbytes_ && zip_->has_crc(*record_);
    if (!is_plain) {
      return std::nullopt;
    }
    return Stored{
        .file = file,
        .offset = record_->data_offset,
        .crc = record_->crc};
  }

 private:
  [[nodiscard]] Status check_size() const {
    return record_->size < nbytes_ // only in the remains of an archive
               ? Status(storage_id_error(
                     "E_STORAGE_SHORT",
                     format(
                         "the record is truncated; expected {} bytes, got {}",
                         nbytes_,
                         record_->size)))
               : Status();
  }

  // Once: callers hold the lock.
  Status check() {
    LOCKSTEP_TRY(check_size());
    if (check_crc_) {
      LOCKSTEP_TRY(zip_->check_crc(*record_));
      check_crc_ = false;
    }
    return {};
  }

  Status read() {
    LOCKSTEP_TRY(check_size());
    LOCKSTEP_ASSIGN(
        bytes_,
        check_crc_ ? zip_->read_checked(*record_, scratch_)
                   : zip_->read(*record_, scratch_));
    check_crc_ = false;
    bytes_ = bytes_.first(nbytes_); // a longer record was warned about
    return {};
  }

  std::shared_ptr<const ZipReader> zip_;
  const ZipRecord* record_;
  std::uint64_t nbytes_;
  bool check_crc_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  ByteSpan bytes_;
  std::vector<std::byte> scratch_;
};

} // namespace

Result<Value> StorageTable::resolve(const Value& id) {
  LOCKSTEP_ASSIGN(const StorageId parsed, read_storage_id(id));
  const bool is_plain_key = !parsed.key.empty() && parsed.key != "." &&
                            parsed.key != ".." &&
                            parsed.key.find('/') == std::string::npos;
  if (!is_plain_key) {
    return storage_id_error(
        "E_NAME",
        format("storage key '{}' is not a record name", escape(parsed.key)));
  }
  std::string name = "data/";
  name += parsed.key;
  const ZipRecord* record = zip_ == nullptr ? nullptr : zip_->find(name);
  std::size_t& row = row_of(record, parsed.key);
  if (row != kNoRow) {
    const StorageEntry& entry = entries_[row];
    if (entry.storage->class_name != parsed.class_name ||
        entry.storage->nbytes != parsed.nbytes) {
      return storage_conflict(parsed, *entry.storage);
    }
    return Value(entry.storage);
  }
  row = entries_.size();
  const auto storage = make_storage(parsed, id);
  if (record != nullptr) {
    storage->source = std::make_shared<RecordSource>(
        zip_,
        *record,
        parsed.nbytes,
        check_crc_);
  }
  entries_.push_back({.storage = storage, .record = record});
  return Value(storage);
}

std::size_t& StorageTable::row_of(
    const ZipRecord* record,
    std::string_view key) {
  if (record == nullptr) {
    return missing_.try_emplace(std::string(key), kNoRow).first->second;
  }
  const auto records = zip_->records();
  rows_.resize(records.size(), kNoRow);
  return rows_[static_cast<std::size_t>(record - records.data())];
}

Status StorageTable::check(const Value& root) const {
  for (const StorageEntry& entry : entries_) {
    const std::uint64_t need = entry.storage->nbytes;
    if (entry.record != nullptr && entry.record->size >= need) {
      continue;
    }
    const std::string tensor = first_tensor_of(root, entry.storage.get());
    const std::string whose =
        tensor.empty() ? "" : format(" of tensor '{}'", escape(tensor));
    Error error =
        entry.record == nullptr
            ? storage_id_error(
                  "E_NO_STORAGE",
                  format("the bytes{} are missing", whose))
            : storage_id_error(
                  "E_STORAGE_SHORT",
                  format(
                      "the bytes{} are truncated; expected {} bytes, got {}",
                      whose,
                      need,
                      entry.record->size));
    error.record = zip_->root() + "/data/" + entry.storage->key;
    return error;
  }
  return {};
}

std::vector<Warning> StorageTable::warnings() const {
  std::vector<Warning> warnings;
  for (const StorageEntry& entry : entries_) {
    if (entry.record != nullptr && entry.record->size > entry.storage->nbytes) {
      warnings.push_back(
          {.name = "W_STORAGE_LONG",
           .text = format(
               "record data/{} has {} bytes, its storage {}",
               escape(entry.storage->key),
               entry.record->size,
               entry.storage->nbytes)});
    }
  }
  return warnings;
}

} // namespace lockstep::ckpt::internal

namespace lockstep::ckpt {

std::shared_ptr<StorageSource> record_source(
    std::shared_ptr<const ZipReader> zip,
    const ZipRecord& record,
    bool check_crc) {
  return std::make_shared<internal::RecordSource>(
      std::move(zip),
      record,
      record.size,
      check_crc);
}

} // namespace lockstep::ckpt
