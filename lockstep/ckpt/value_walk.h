// SPDX-License-Identifier: BSD-3-Clause
//
// Walking a value tree: children of a node, tensors with their dotted names.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Number of values directly below `value`: elements; keys and values of a
/// dict, then those of its attributes; args, state and items of an object.
std::size_t child_count(const Value& value);

/// The child at `index`, counted as above. Ownership: the node's.
Value& child_at(const Value& value, std::size_t index);

/// Name of a dict key inside a dotted path: Python's `str(key)`.
std::string key_text(const Value& key);

/// True if `value` is a whole `torch.nn.Module`: an object whose state is a
/// dict with `_modules`.
bool is_module(const Value& value);

/// What a module registers, in the order of its state_dict.
enum class MemberKind : std::uint8_t { kParameter, kBuffer, kModule };
/// Where a module's state holds them, in the order of MemberKind.
inline constexpr std::array<std::string_view, 3> kMemberParts{
    "_parameters",
    "_buffers",
    "_modules"};
using MemberVisitor = std::function<
    Status(MemberKind kind, const Value& key, const Value& value)>;

/// Visits what state_dict shows of a module with this `state`: parameters,
/// persistent buffers, then children; None is left out. Errors: what `visit`
/// returned.
Status for_each_member(const Value& state, const MemberVisitor& visit);

/// Called for each tensor with its name: "state_dict.fc.weight".
using TensorVisitor =
    std::function<void(const std::string& name, const Tensor& tensor)>;

/// Visits the tensors of a tree in file order. A module shows the names of
/// its state_dict, a sparse or nested tensor those of its parts ("w.indices",
/// "w.values"); other objects their state. Other calls (REDUCE arguments), sets
/// and attributes are left out. A container or module reached twice is visited
/// twice, another object once.
/// Errors: kUnsafe (E_LIMIT) after `max_visits` nodes.
Status for_each_tensor(
    const Value& root,
    const TensorVisitor& visit,
    std::uint64_t max_visits = 20'000'000);

/// Name of the first tensor that views `storage`, "" if none does.
std::string first_tensor_of(const Value& root, const Storage* storage);

} // namespace lockstep::ckpt
