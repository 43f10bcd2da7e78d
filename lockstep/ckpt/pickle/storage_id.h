// SPDX-License-Identifier: BSD-3-Clause
//
// How PyTorch refers to a storage inside a pickle: the persistent id
// ('storage', class, key, location, numel), typed and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The parts of a storage's id. Views of the value that was read.
struct StorageId {
  /// "torch.FloatStorage".
  std::string_view class_name = {};
  DType dtype = DType::kFloat32;
  /// "0" in a zip, a decimal address in a legacy file.
  std::string_view key = {};
  /// "cpu", "cuda:0".
  std::string_view location = {};
  /// Units: bytes.
  std::uint64_t nbytes = 0;
};

/// Parts of an id: tag, class, key, location, number of elements.
inline constexpr std::size_t kStorageIdParts = 5;

/// Reads an id of at least five parts; further parts, up to `max_parts` in all,
/// are the caller's. Errors: kCorrupt (E_TYPE, E_OVERFLOW).
Result<StorageId> read_storage_id(
    const Value& id,
    std::size_t max_parts = kStorageIdParts);

/// A storage without bytes for `id`, which keeps the strings of `value`.
std::shared_ptr<Storage> make_storage(const StorageId& id, const Value& value);

/// The storage of an id whose key named `before` earlier. That one; or a new
/// one if neither has bytes, which PyTorch's tensors may view as several types.
/// Errors: kCorrupt (E_STORAGE_CONFLICT) if the two ids do not agree.
Result<std::shared_ptr<Storage>> named_again(
    const StorageId& id,
    const Value& value,
    const std::shared_ptr<Storage>& before);

/// A new storage of no bytes.
std::shared_ptr<Storage> empty_storage(DType dtype);

} // namespace lockstep::ckpt
