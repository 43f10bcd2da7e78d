// SPDX-License-Identifier: BSD-3-Clause
//
// The elements of a tensor as bytes in row-major order, whatever its strides,
// with the conj and neg flags applied: what Python's `t.contiguous()` holds.
//   for_each_block(tensor, [&](ByteSpan bytes) { hash.update(bytes); ... });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Units: bytes. Largest block that `for_each_block` gives.
inline constexpr std::uint64_t kTensorBlockBytes = 1ULL << 18;

/// Units: bytes of the elements in row-major order. Types with several elements
/// in a byte count whole bytes per row.
std::uint64_t contiguous_bytes(const Tensor& tensor);

/// True if the tensor has bytes in the file (one on the device `meta` has not).
bool has_bytes(const Tensor& tensor);

/// Refuses a view that repeats the bytes of its storage too often.
/// Units: bytes beyond those of the storage. Errors: kUnsafe (E_LIMIT).
Status check_expansion(const Tensor& tensor, std::uint64_t max_expanded_bytes);

/// Reads a tensor's elements from the first to the last. A contiguous tensor
/// takes a fixed amount of memory; a strided one from a file that is not mapped
/// takes what its view spans. Ownership: keeps a reference to the tensor.
class TensorBlocks {
 public:
  explicit TensorBlocks(const Tensor& tensor);
  ~TensorBlocks();
  TensorBlocks(const TensorBlocks&) = delete;
  TensorBlocks& operator=(const TensorBlocks&) = delete;

  /// The next block, empty at the end; valid until the next call. All blocks
  /// but the last hold `block_elements()`.
  /// Errors: as `StorageSource::view`.
  Result<ByteSpan> next();

  /// Units: elements; those of packed types are their bytes.
  [[nodiscard]] std::uint64_t block_elements() const noexcept;
  /// Changes the size of the blocks to come, so that two tensors of different
  /// types can be read side by side. Precondition: at least 1, and no more than
  /// `kTensorBlockBytes` together.
  void set_block_elements(std::uint64_t count) noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Takes the next block; an error stops the walk and is returned.
using BlockVisitor = std::function<Status(ByteSpan)>;

/// Gives all blocks of `tensor`. Errors: as `TensorBlocks`, and of `visit`.
Status for_each_block(const Tensor& tensor, const BlockVisitor& visit);

} // namespace lockstep::ckpt
