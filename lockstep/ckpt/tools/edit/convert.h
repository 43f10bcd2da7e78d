// SPDX-License-Identifier: BSD-3-Clause
//
// Changes the tensors of a checkpoint and nothing else: element type, device
// tag, views cut to their own bytes. Lazy: bytes are converted block by block
// while they are written.
//   auto half = convert_tensors(file.root, {.dtype = DType::kBFloat16});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What `convert_tensors` changes.
struct ConvertOptions {
  /// New element type of tensors of float64, float32, float16 and bfloat16, one
  /// of these four; other tensors stay. Rounds to nearest even, as PyTorch.
  std::optional<DType> dtype = {};
  /// New device tag of all tensors ("cpu", "cuda:0"); empty keeps them.
  std::string map_location = {};
  /// Give tensors that see only a part of a storage one of their own, so that
  /// the rest is not written. Tensors that share memory this way part.
  bool clone_views = false;
};

/// One tensor that changed.
struct TensorChange {
  std::string name = {};
  /// "float32 cpu", with the bytes of its storage.
  std::string from = {};
  std::string to = {};
  /// Units: bytes of the storage.
  std::uint64_t from_bytes = 0;
  std::uint64_t to_bytes = 0;
};

/// A tree with other tensors. Ownership: shares what did not change with the
/// tree it was made of, which is left as it was.
struct Converted {
  Value root = {};
  /// In file order; tensors reached by name.
  std::vector<TensorChange> changes = {};
};

/// Errors: kInvalidArgument for another dtype; kUnsupported (E_MIXED_VIEWS) if
/// tensors of several types view one storage that is to change its type;
/// kUnsafe (E_LIMIT) for a tree that expands without end.
Result<Converted> convert_tensors(
    const Value& root,
    const ConvertOptions& options);

/// Names of the tensors in which a finite number was beyond the new type and
/// became infinite. Known once they have been read: after saving.
std::vector<std::string> overflowed(const Converted& converted);

} // namespace lockstep::ckpt
