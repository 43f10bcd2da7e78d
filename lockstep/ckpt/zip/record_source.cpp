// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/record_source.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {
namespace {

// A record of the archive, read and checked when first asked for.
class RecordSource final : public StorageSource {
 public:
  RecordSource(
      std::shared_ptr<const ZipReader> zip,
      const ZipRecord& record,
      std::uint64_t nbytes,
      bool check_crc,
      std::uint64_t offset)
      : zip_(std::move(zip)),
        record_(&record),
        offset_(offset),
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
    return zip_->source()->view(
        record_->data_offset + offset_ + offset,
        length,
        scratch);
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
    std::uint64_t before = offset_;
    std::uint64_t left = nbytes_;
    return zip_->stream(*record_, compares, [&](ByteSpan block) {
      const std::uint64_t skipped = std::min(block.size(), before);
      before -= skipped;
      const auto part = block.subspan(
          skipped,
          std::min<std::uint64_t>(block.size() - skipped, left));
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
    return record_->size <
                   offset_ + nbytes_ // only in the remains of an archive
               ? Status(corrupt_file(
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
    bytes_ = bytes_.subspan(offset_, nbytes_); // a longer one was warned about
    return {};
  }

  std::shared_ptr<const ZipReader> zip_;
  const ZipRecord* record_;
  std::uint64_t offset_;
  std::uint64_t nbytes_;
  bool check_crc_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  ByteSpan bytes_;
  std::vector<std::byte> scratch_;
};

} // namespace

std::shared_ptr<StorageSource> record_source(
    std::shared_ptr<const ZipReader> zip,
    const ZipRecord& record,
    std::uint64_t nbytes,
    bool check_crc,
    std::uint64_t offset) {
  return std::make_shared<RecordSource>(
      std::move(zip),
      record,
      nbytes,
      check_crc,
      offset);
}

Result<std::string> record_text(
    const ZipReader& zip,
    const ZipRecord& record,
    const LoadOptions& options) {
  if (record.size > options.limits.max_pickle_bytes) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format(
            "record '{}' is too large; expected at most {} bytes, got {}",
            escape(record.name),
            options.limits.max_pickle_bytes,
            record.size),
        "Limits::max_pickle_bytes allows more");
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      options.check_crc ? zip.read_checked(record, scratch)
                        : zip.read(record, scratch));
  return std::string(as_text(bytes));
}

} // namespace lockstep::ckpt
