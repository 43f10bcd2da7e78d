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

/// The `bytes` bytes of `source` by its views, in blocks of kTensorBlockBytes.
/// Errors: those of the views; what `visit` returned.
Status stream_views(
    StorageSource& source,
    std::uint64_t bytes,
    const BlockVisitor& visit);

/// Makes its bytes in blocks; keeps them only for who asks for all at once.
class MadeSource : public StorageSource {
 public:
  /// Units: bytes that there will be; 0 if nobody knows.
  explicit MadeSource(std::uint64_t bytes = 0) : expected_(bytes) {}

  Result<ByteSpan> load() override;
  /// Makes all bytes for the first view and drops them after the view of the
  /// last one: who reads from front to end makes them once. Those that are made
  /// a second time stay.
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override;
  Status stream(const BlockVisitor& visit) override = 0;

 private:
  // Callers hold the lock.
  Status make();

  std::uint64_t expected_;
  std::mutex mutex_;
  bool is_made_ = false;
  bool is_loaded_ = false; // spans into `bytes_` are out
  bool was_dropped_ = false; // once: many views may end where the bytes do
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

/// Bytes [offset, offset + length) of those of `row_bytes`. Nothing is kept.
/// Errors: as `StorageSource::view`.
Result<ByteSpan> row_view(
    const Tensor& tensor,
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& scratch);

/// As `torch.tensor(number)`: int64 and float32 without dimensions.
Value scalar_tensor(std::int64_t number);
Value scalar_tensor(float number);

} // namespace lockstep::ckpt::internal
