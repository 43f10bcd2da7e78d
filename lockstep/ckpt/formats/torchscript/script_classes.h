// SPDX-License-Identifier: BSD-3-Clause
//
// A value tree as LibTorch sees it: objects with typed attributes. LibTorch
// needs a class for each object, since an archive says what it holds in code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ckpt/core/value_changes.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {

/// One attribute of an object.
struct ScriptAttribute {
  enum class Role { kPlain, kParameter, kBuffer };
  std::string name = {};
  /// "Tensor", "int", "Tuple[float, float]"; empty for an object.
  std::string type = {};
  Value value = {};
  /// Index of the object's class, if it is one.
  std::optional<std::size_t> object = {};
  Role role = Role::kPlain;
};

/// One object and, since no two share a class, its class.
struct ScriptClass {
  /// "Module", or a name of script_tree.h.
  std::string name = "Module";
  std::vector<ScriptAttribute> attributes = {};
};

/// "__torch__" for the first class, "__torch__.___torch_mangle_0" and so on
/// for the others: LibTorch's own way to tell equal names apart.
std::string script_module(std::size_t index);

/// The objects that hold `root`; the first is the root's. A state_dict becomes
/// modules along its dots, with those its `_metadata` names; a whole model its
/// modules; lists of tensors and of one kind of scalar stay values.
/// Errors (E_NOT_SCRIPT; the message says where): kUnsupported for a value
/// LibTorch has no type for, kInvalidArgument where a name is both a tensor and
/// a module.
Result<std::vector<ScriptClass>> script_classes(const Value& root);

/// Values that become others in those objects. Errors: as `script_classes`.
Result<std::vector<ValueChange>> script_changes(const Value& root);

} // namespace lockstep::ckpt::internal
