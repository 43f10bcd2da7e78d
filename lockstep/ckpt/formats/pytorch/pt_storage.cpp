// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/pytorch/pt_storage.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/storage_id.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/record_source.h"

namespace lockstep::ckpt::internal {
Result<Value> StorageTable::resolve(const Value& id) {
  LOCKSTEP_ASSIGN(const StorageId parsed, read_storage_id(id));
  const bool is_plain_key = !parsed.key.empty() && parsed.key != "." &&
                            parsed.key != ".." &&
                            parsed.key.find('/') == std::string::npos;
  if (!is_plain_key) {
    return corrupt_file(
        "E_NAME",
        format("storage key '{}' is not a record name", escape(parsed.key)));
  }
  std::string name = "data/";
  name += parsed.key;
  const ZipRecord* record = zip_ == nullptr ? nullptr : zip_->find(name);
  std::size_t& row = row_of(record, parsed.key);
  if (row != kNoRow) {
    const StorageEntry entry = entries_[row];
    LOCKSTEP_ASSIGN(auto storage, named_again(parsed, id, entry.storage));
    if (storage != entry.storage) {
      entries_.push_back({.storage = storage, .record = entry.record});
    }
    return Value(std::move(storage));
  }
  row = entries_.size();
  const auto storage = make_storage(parsed, id);
  if (record != nullptr) {
    storage->source = record_source(zip_, *record, parsed.nbytes, check_crc_);
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
            ? corrupt_file(
                  "E_NO_STORAGE",
                  format("the bytes{} are missing", whose))
            : corrupt_file(
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
