// SPDX-License-Identifier: BSD-3-Clause
//
// The elements of a tensor, row by row: their bytes in blocks, and what they
// say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

// The elements of a tensor as bytes in row-major order, whatever its strides,
// with the conj and neg flags applied: what Python's `t.contiguous()` holds.
//   for_each_block(tensor, [&](ByteSpan bytes) { hash.update(bytes); ... });

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

/// Bytes of views that may be read or written for each byte of their storages.
inline constexpr std::uint64_t kViewsPerByte = 16;

/// The same of many tensors: a thousand views of one storage repeat it, too.
class ExpansionBudget {
 public:
  /// Units: bytes beyond `kViewsPerByte` for each of the storages.
  explicit ExpansionBudget(std::uint64_t max_expanded_bytes)
      : max_expanded_bytes_(max_expanded_bytes) {}

  /// Counts `tensor`, whose bytes are read or written next.
  /// Errors: kUnsafe (E_LIMIT).
  Status add(const Tensor& tensor);

 private:
  std::uint64_t max_expanded_bytes_;
  std::unordered_set<const Storage*> storages_;
  // Units: bytes.
  std::uint64_t own_ = 0;
  std::uint64_t views_ = 0;
};

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

/// Gives all blocks of `tensor`. Errors: as `TensorBlocks`, and of `visit`.
Status for_each_block(const Tensor& tensor, const BlockVisitor& visit);

// Elements of stored tensors as numbers, and what a tensor holds.

/// The element at `bytes` as a double (int64 may round); nothing for complex
/// and packed sub-byte types. Quantized types give their stored integers.
std::optional<double> read_number(const std::byte* bytes, DType dtype);

/// A complex number is NaN if a part is, else infinite if a part is. Elements
/// that are no numbers are finite.
enum class Finiteness { kFinite, kInf, kNan };

Finiteness finiteness_of(const std::byte* bytes, DType dtype);

/// The element as Python prints it: "0.1", "True", "(1+2j)", "0x1f".
std::string element_text(const std::byte* bytes, DType dtype);

/// A complex number as Python prints it: "(1-0j)", "2j".
std::string complex_text(double real, double imaginary);

/// What a tensor holds.
struct TensorStats {
  /// Over finite elements; absent if there are none, or for complex types.
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::optional<double> mean = {};
  std::uint64_t elements = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
  /// Its first elements in row-major order.
  std::vector<std::string> head = {};
};

/// Reads the bytes of `tensor`, as stored: the conj and neg flags are not
/// applied. `max_elements` bounds the work for views that repeat elements.
/// Errors: what loading returned; kUnsafe (E_LIMIT).
Result<TensorStats> tensor_stats(
    const Tensor& tensor,
    std::uint64_t head_count = 8,
    std::uint64_t max_elements = 16'000'000);

} // namespace lockstep::ckpt
