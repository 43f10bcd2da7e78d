// SPDX-License-Identifier: BSD-3-Clause
//
// Models that were saved whole: what they are, their state_dict, the sources of
// their classes. The classes themselves are not needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

// Whole models in a file: which class was saved, what wraps it, and for which
// devices. The class itself is not needed.
//   auto facts = module_facts(file.root);       // class_name "...DataParallel"

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

// The state_dict of a model that was saved whole, without the model's class:
// what `model.state_dict()` would have given.
//   auto model = extract_model(file.root, {.unwrap = true});
//   ckpt::save("weights.pth", model->state_dict);

/// What `extract_model` does.
struct ExtractOptions {
  /// Dotted name of the model in the file; empty: the root, or the only model
  /// among the entries of the top level.
  std::string key = {};
  /// Take the model out of DataParallel and the like: keys without "module.".
  /// A layer that is itself called `module` keeps its name.
  bool unwrap = false;
};

/// A child of a module that is no module itself in the file, but a call of
/// foreign code (`__reduce__`).
struct UnreadModule {
  /// "body.0".
  std::string name = {};
  /// What would make it, "package.rebuild".
  std::string class_name = {};
};

/// A model's weights.
struct ExtractedModel {
  /// OrderedDict of tensors with `_metadata`, in the order of state_dict.
  Value state_dict = {};
  ModuleFacts facts = {};
  /// Name of the model in the file; empty for the root.
  std::string key = {};
  std::uint64_t parameters = 0;
  std::uint64_t buffers = 0;
  /// Children whose weights are not among these: Python's state_dict has them.
  std::vector<UnreadModule> unread = {};
  /// Names of tensors of the model that no state_dict shows, since they are
  /// neither parameters nor persistent buffers (packed weights of quantized
  /// layers), as `unnamed_tensors` gives them.
  std::vector<std::string> left_out = {};
};

/// Parameters, persistent buffers, children; versions for `_metadata` come from
/// a table of PyTorch's classes. Ownership: shares the storages.
/// Errors: kNotFound (E_NO_MODEL; E_NO_KEY for `key`), kInvalidArgument
/// (E_NO_MODEL) if several models are there, kUnsafe (E_LIMIT) if shared parts
/// expand without end.
Result<ExtractedModel> extract_model(
    const Value& root,
    const ExtractOptions& options = {});

/// The same of a file; of a program of torch.export its state_dict (`key` is
/// the name of a program where there are several), and constants and buffers
/// that are not persistent are left out. Errors: also kInvalidArgument
/// (E_NO_MODEL) for several programs.
Result<ExtractedModel> extract_model(
    const Checkpoint& file,
    const ExtractOptions& options = {});

// TorchScript programs: code, constants and a tree of objects with tensors. The
// code is not read.
//   if (!script_class(file.root).empty()) {
//     ckpt::save("weights.pth", *script_weights(file.root));
//   }

/// The class of the program that `value` is, "__torch__.Net"; empty for any
/// other value, also for what C++ `torch::save` wrote.
std::string_view script_class(const Value& value);

/// The tensors of `program` as a state_dict: an OrderedDict with dotted names.
/// Tensors that are plain attributes are among them, as only the code tells
/// them from parameters and buffers. Ownership: shares the storages. Errors:
/// kUnsafe (E_DEPTH, E_LIMIT).
Result<Value> script_weights(const Value& program);

// The Python sources that travel in a file: those of classes in legacy and tar
// checkpoints, `code/*` of TorchScript archives. They are text: nothing parses
// or runs them.

/// Sources of `file`, which was loaded from `source` (null for a folder). A
/// record of an archive is named as in it, "code/__torch__/net.py".
/// Errors: as `load` for a record that is damaged.
Result<std::vector<ClassSource>> class_sources(
    const Checkpoint& file,
    const std::shared_ptr<ByteSource>& source);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
