// SPDX-License-Identifier: BSD-3-Clause
//
// Storages that are made of others when they are read.
//   storage->source = std::make_shared<GatheredSource>(tensor);
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// Makes its bytes in blocks; keeps them only for who asks for all at once.
class MadeSource : public StorageSource {
 public:
  /// Units: bytes that there will be; 0 if nobody knows.
  explicit MadeSource(std::uint64_t bytes = 0) : expected_(bytes) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (!is_loaded_) {
      bytes_.clear();
      bytes_.reserve(expected_);
      LOCKSTEP_TRY(stream([this](ByteSpan block) {
        bytes_.insert(bytes_.end(), block.begin(), block.end());
        return Status();
      }));
      is_loaded_ = true;
    }
    return ByteSpan(bytes_);
  }
  Status stream(const BlockVisitor& visit) override = 0;

 private:
  std::uint64_t expected_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  std::vector<std::byte> bytes_;
};

/// The elements of a tensor, row-major without gaps, as `for_each_block` gives
/// them.
class GatheredSource final : public MadeSource {
 public:
  explicit GatheredSource(Tensor tensor) : tensor_(std::move(tensor)) {}

  Status stream(const BlockVisitor& visit) override {
    return for_each_block(tensor_, visit);
  }

 private:
  Tensor tensor_;
};

/// True if a tensor that has bytes is in its storage as `GatheredSource` would
/// give it.
bool lies_in_rows(const Tensor& tensor);

/// Where a tensor that `lies_in_rows` has its elements; empty without any, as
/// its view may begin behind the storage then. Ownership: the storage's.
/// Errors: kCorrupt (E_VIEW_BOUNDS) outside of it; as `StorageSource::load`.
Result<ByteSpan> row_bytes(const Tensor& tensor);

/// As `torch.tensor(number)`: int64 and float32 without dimensions.
Value scalar_tensor(std::int64_t number);
Value scalar_tensor(float number);

} // namespace lockstep::ckpt::internal
