// SPDX-License-Identifier: BSD-3-Clause
//
// What LibTorch archives hold, as the values Python would save. An archive of
// C++ `torch::save` is a tree of objects of the class `__torch__.Module`, one
// attribute per value; that becomes a state_dict or nested dicts.
#pragma once

#include <string_view>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Classes of the objects in an archive that are containers. LibTorch knows
/// `kModule` alone; the others are ours, so that what we wrote reads back.
enum class ScriptContainer {
  /// A class of a TorchScript program.
  kNone,
  /// Attributes are parts of dotted names, or named values.
  kModule,
  kDict,
  /// A dict with integer keys.
  kIntDict,
  kList,
};

/// Judges a class: "__torch__.___torch_mangle_3.Module" is `kModule`.
ScriptContainer script_container(std::string_view class_name);

/// True for what LibTorch itself resolves in an archive's pickles: classes of
/// the archive's own code and the typed containers. Python never looks them up.
bool is_script_name(std::string_view name);

/// Replaces containers below `root`. A module that holds nothing but tensors
/// becomes an OrderedDict with dotted keys, any other a dict. Objects of other
/// classes stay, with their state replaced the same way. Shared nodes stay
/// shared. Errors: kUnsafe (E_DEPTH, E_LIMIT).
Result<Value> plain_tree(const Value& root, const Limits& limits = {});

} // namespace lockstep::ckpt
