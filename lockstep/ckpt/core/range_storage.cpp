// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/range_storage.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace lockstep::ckpt {
namespace {

class RangeStorage final : public StorageSource {
 public:
  RangeStorage(
      std::shared_ptr<ByteSource> source,
      std::uint64_t offset,
      std::uint64_t length)
      : source_(std::move(source)), offset_(offset), length_(length) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (!is_loaded_) {
      LOCKSTEP_ASSIGN(bytes_, source_->view(offset_, length_, scratch_));
      is_loaded_ = true;
    }
    return bytes_;
  }

  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    return source_->view(offset_ + offset, length, scratch);
  }

  // Of a file that is read, blocks: what is needed once is not kept.
  Status stream(const BlockVisitor& visit) override {
    const std::uint64_t most = source_->is_stable() ? length_ : kBlockBytes;
    std::vector<std::byte> scratch;
    for (std::uint64_t at = 0; at < length_; at += most) {
      LOCKSTEP_ASSIGN(
          const ByteSpan block,
          view(at, std::min(most, length_ - at), scratch));
      LOCKSTEP_TRY(visit(block));
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kBlockBytes = 1 << 20;

  std::shared_ptr<ByteSource> source_;
  std::uint64_t offset_;
  std::uint64_t length_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  ByteSpan bytes_;
  std::vector<std::byte> scratch_;
};

} // namespace

std::shared_ptr<StorageSource> make_range_storage(
    std::shared_ptr<ByteSource> source,
    std::uint64_t offset,
    std::uint64_t length) {
  return std::make_shared<RangeStorage>(std::move(source), offset, length);
}

} // namespace lockstep::ckpt
