// SPDX-License-Identifier: BSD-3-Clause
//
// Storages of a zip checkpoint: persistent ids become lazy storages whose
// bytes are records `data/KEY`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/pickle/pickle.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt::internal {

/// One storage of the file.
struct StorageEntry {
  std::shared_ptr<Storage> storage = {};
  /// Null if the record is missing.
  const ZipRecord* record = nullptr;
};

/// Makes one `Storage` for each key. Records are looked up here but judged by
/// `check`, which can name the tensors.
class StorageTable final : public PersistentIdHandler {
 public:
  /// `zip` may be null: then only sizes are collected.
  StorageTable(std::shared_ptr<const ZipReader> zip, bool check_crc)
      : zip_(std::move(zip)), check_crc_(check_crc) {}

  /// Errors: kCorrupt (E_TYPE, E_NAME, E_OVERFLOW, E_STORAGE_CONFLICT).
  Result<Value> resolve(const Value& id) override;

  /// Compares records with declared sizes; `root` gives the tensors' names.
  /// Errors: kCorrupt (E_NO_STORAGE, E_STORAGE_SHORT).
  [[nodiscard]] Status check(const Value& root) const;

  /// W_STORAGE_LONG for records longer than their storages.
  [[nodiscard]] std::vector<Warning> warnings() const;

  /// In the order of first use.
  [[nodiscard]] const std::vector<StorageEntry>& entries() const noexcept {
    return entries_;
  }

 private:
  static constexpr std::size_t kNoRow = ~std::size_t{0};

  std::size_t& row_of(const ZipRecord* record, std::string_view key);

  std::shared_ptr<const ZipReader> zip_;
  bool check_crc_;
  std::vector<StorageEntry> entries_;
  // Rows of entries_: by record, and of storages without one by key.
  std::vector<std::size_t> rows_;
  std::map<std::string, std::size_t> missing_;
};

} // namespace lockstep::ckpt::internal
