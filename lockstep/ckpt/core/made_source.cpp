// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/made_source.h"

#include <cstring>
#include <memory>
#include <string>

namespace lockstep::ckpt::internal {
namespace {

class ScalarBytes final : public StorageSource {
 public:
  explicit ScalarBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<ByteSpan> load() override {
    return as_byte_span(bytes_);
  }

 private:
  std::string bytes_;
};

template <class T>
Value scalar_of(DType dtype, T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  auto storage = std::make_shared<Storage>(
      Storage{.nbytes = bytes.size(), .dtype = dtype});
  storage->source = std::make_shared<ScalarBytes>(std::move(bytes));
  return Tensor{.dtype = dtype, .storage = std::move(storage)};
}

} // namespace

Status stream_views(
    StorageSource& source,
    std::uint64_t bytes,
    const BlockVisitor& visit) {
  std::vector<std::byte> scratch;
  for (std::uint64_t at = 0; at < bytes; at += kTensorBlockBytes) {
    const std::uint64_t length = std::min(kTensorBlockBytes, bytes - at);
    LOCKSTEP_ASSIGN(const ByteSpan block, source.view(at, length, scratch));
    LOCKSTEP_TRY(visit(block));
  }
  return {};
}

Result<ByteSpan> MadeSource::load() {
  const std::scoped_lock lock(mutex_);
  LOCKSTEP_TRY(make());
  is_loaded_ = true;
  return ByteSpan(bytes_);
}

Result<ByteSpan> MadeSource::view(
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& scratch) {
  const std::scoped_lock lock(mutex_);
  LOCKSTEP_TRY(make());
  LOCKSTEP_CHECK(offset <= bytes_.size() && length <= bytes_.size() - offset);
  const ByteSpan part = ByteSpan(bytes_).subspan(offset, length);
  if (is_loaded_) {
    return part;
  }
  scratch.assign(part.begin(), part.end());
  if (offset + length == bytes_.size() && !was_dropped_) {
    bytes_ = {};
    is_made_ = false;
    was_dropped_ = true;
  }
  return ByteSpan(scratch);
}

Status MadeSource::make() {
  if (is_made_) {
    return {};
  }
  bytes_.clear();
  bytes_.reserve(expected_);
  LOCKSTEP_TRY(stream([this](ByteSpan block) {
    bytes_.insert(bytes_.end(), block.begin(), block.end());
    return Status();
  }));
  is_made_ = true;
  return {};
}

Value scalar_tensor(std::int64_t number) {
  return scalar_of(DType::kInt64, number);
}

Value scalar_tensor(float number) {
  return scalar_of(DType::kFloat32, number);
}

} // namespace lockstep::ckpt::internal
