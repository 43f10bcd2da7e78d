// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/swapped_storage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/ckpt/core/made_source.h"

namespace lockstep::ckpt {
namespace {

// Bytes that change places.
std::size_t number_bytes(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.name.starts_with("complex") ? info.size / 2 : info.size;
}

class SwappedStorage final : public internal::MadeSource {
 public:
  SwappedStorage(
      std::shared_ptr<StorageSource> source,
      std::uint64_t bytes,
      std::size_t width)
      : MadeSource(bytes),
        source_(std::move(source)),
        size_(bytes),
        width_(width) {}

  // Reads the whole numbers that the range touches.
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    LOCKSTEP_CHECK(offset <= size_ && length <= size_ - offset);
    const std::uint64_t skipped = offset % width_;
    const std::uint64_t cut = (skipped + length) % width_;
    const std::uint64_t size = std::min(
        skipped + length + (cut == 0 ? 0 : width_ - cut),
        size_ - (offset - skipped));
    std::vector<std::byte> read;
    LOCKSTEP_ASSIGN(
        const ByteSpan numbers,
        source_->view(offset - skipped, size, read));
    scratch.assign(numbers.begin(), numbers.end());
    const auto step = static_cast<std::ptrdiff_t>(width_);
    for (auto at = scratch.begin(); scratch.end() - at >= step; at += step) {
      std::reverse(at, at + step);
    }
    return ByteSpan(scratch).subspan(skipped, length);
  }

  Status stream(const BlockVisitor& visit) override {
    return internal::stream_views(*this, size_, visit);
  }

 private:
  std::shared_ptr<StorageSource> source_;
  // Units: bytes.
  std::uint64_t size_;
  std::size_t width_;
};

} // namespace

std::shared_ptr<StorageSource> swapped_storage(
    std::shared_ptr<StorageSource> source,
    std::uint64_t bytes,
    DType dtype) {
  const std::size_t width = number_bytes(dtype);
  return width == 1 ? std::move(source)
                    : std::make_shared<SwappedStorage>(
                          std::move(source),
                          bytes,
                          width);
}

} // namespace lockstep::ckpt
