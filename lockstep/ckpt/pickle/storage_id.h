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

/// `id` names a storage again, but as another one than before.
Error storage_conflict(const StorageId& id, const Storage& before);

/// Reads an id of at least five parts; further parts are the caller's.
/// Errors: kCorrupt (E_TYPE, E_OVERFLOW).
Result<StorageId> read_storage_id(const Value& id);

/// A storage without bytes for `id`, which keeps the strings of `value`.
std::shared_ptr<Storage> make_storage(const StorageId& id, const Value& value);

} // namespace lockstep::ckpt
