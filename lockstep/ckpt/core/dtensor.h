// SPDX-License-Identifier: BSD-3-Clause
//
// DTensors, which FSDP2's and tensor-parallel `state_dict()` hold: the part of
// a tensor that one rank has, the mesh of ranks, and how the whole is spread
// over it. In a pickle each is a call of `_rebuild_from_type_v2`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {

/// What a DTensor says of itself.
struct DTensor {
  /// The rank's part, a tensor. Ownership: the tree's.
  const Value* local = nullptr;
  DType dtype = DType::kFloat32;
  /// Of the whole tensor.
  std::vector<std::int64_t> sizes = {};
  bool requires_grad = false;
  bool is_parameter = false;
  /// The part is all of it.
  bool is_whole = false;
  /// It has attributes of its own, which a plain tensor in its place would
  /// lack.
  bool has_attributes = false;
  /// "rows 5..10 of 10, Shard(0)"; the placements alone if it is whole.
  std::string place = {};
};

/// Reads the arguments of `_rebuild_from_type_v2`; nothing if they make no
/// DTensor.
std::optional<DTensor> read_dtensor(const std::vector<Value>& parts);

/// True for the class, by any of the names that it has had.
bool is_dtensor_class(std::string_view name);

/// Puts the tensors of DTensors that `root` has all of in their place; their
/// meshes and placements are left out. Says so, and which others are pieces
/// (W_SHARD). `bounds` have a budget. Errors: kUnsafe (E_LIMIT).
Result<std::vector<Warning>> take_whole_dtensors(
    Value& root,
    const WalkBounds& bounds);

/// "rows 0..4 of 7", or "[0:4, 2:5] of [7, 5]" if more than rows are cut.
std::string piece_text(
    const std::vector<std::int64_t>& begin,
    const std::vector<std::int64_t>& end,
    const std::vector<std::int64_t>& whole);

} // namespace lockstep::ckpt
