// SPDX-License-Identifier: BSD-3-Clause
//
// Whole models in a file: which class was saved, what wraps it, and for which
// devices. The class itself is not needed.
//   auto facts = module_facts(file.root);       // class_name "...DataParallel"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What a whole model says about itself.
struct ModuleFacts {
  /// "torch.nn.parallel.data_parallel.DataParallel", "model.Net"; empty if the
  /// value is not a model.
  std::string class_name = {};
  /// Class behind the wrappers; empty without one.
  std::string inner_class = {};
  /// Devices that DataParallel was told to use: "0", "cuda:1".
  std::vector<std::string> device_ids = {};
  /// Device of its output; empty if it does not say.
  std::string output_device = {};
  /// `torch.save(model.state_dict)`: the method was saved instead of its
  /// result, and the model with it.
  bool is_uncalled = false;
};

/// The model that `value` is, or whose `state_dict` was saved without a call;
/// null for any other value. Ownership: of the tree.
const Value* module_in(const Value& value);

/// The model inside a wrapper, null if `module` is not one: DataParallel,
/// DistributedDataParallel, a compiled or averaged model.
const Value* wrapped_module(const Value& module);

/// Facts of `module_in(value)`; no class name if there is none.
ModuleFacts module_facts(const Value& value);

/// What `torch.save(model.state_dict)` left in a file.
inline constexpr std::string_view kUncalledText =
    "holds model.state_dict, saved without a call";

/// What the file holds and how its weights are had; for `module_facts` of a
/// model.
std::string whole_model_hint(const ModuleFacts& facts);

/// "model.Net in ...DataParallel, device_ids [0, 1]"; foreign text is escaped.
std::string to_text(const ModuleFacts& facts);

} // namespace lockstep::ckpt
