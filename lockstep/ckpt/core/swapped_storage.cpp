// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/swapped_storage.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::ckpt {
namespace {

// Bytes that change places.
std::size_t number_bytes(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.name.starts_with("complex") ? info.size / 2 : info.size;
}

class SwappedStorage final : public StorageSource {
 public:
  SwappedStorage(std::shared_ptr<StorageSource> source, std::size_t width)
      : source_(std::move(source)),
        width_(static_cast<std::ptrdiff_t>(width)) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (source_ != nullptr) {
      LOCKSTEP_ASSIGN(const ByteSpan bytes, source_->load());
      bytes_.assign(bytes.begin(), bytes.end());
      for (auto at = bytes_.begin(); bytes_.end() - at >= width_;
           at += width_) {
        std::reverse(at, at + width_);
      }
      source_ = nullptr; // its bytes may go
    }
    return ByteSpan(bytes_);
  }

 private:
  std::shared_ptr<StorageSource> source_;
  std::ptrdiff_t width_;
  std::mutex mutex_;
  std::vector<std::byte> bytes_;
};

} // namespace

std::shared_ptr<StorageSource> swapped_storage(
    std::shared_ptr<StorageSource> source,
    DType dtype) {
  const std::size_t width = number_bytes(dtype);
  return width == 1
             ? std::move(source)
             : std::make_shared<SwappedStorage>(std::move(source), width);
}

} // namespace lockstep::ckpt
