// SPDX-License-Identifier: BSD-3-Clause
//
// The state_dict of a model that was saved whole, without the model's class:
// what `model.state_dict()` would have given.
//   auto model = extract_model(file.root, {.unwrap = true});
//   ckpt::save("weights.pth", model->state_dict);
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ckpt/tools/model/module_facts.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What `extract_model` does.
struct ExtractOptions {
  /// Dotted name of the model in the file; empty: the root, or the only model
  /// among the entries of the top level.
  std::string key = {};
  /// Take the model out of DataParallel and the like: keys without "module.".
  /// A layer that is itself called `module` keeps its name.
  bool unwrap = false;
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
  /// Tensors of the model that no state_dict shows, since they are neither
  /// parameters nor buffers (packed weights of quantized layers), and the
  /// dotted name of the attribute that holds the first.
  std::uint64_t left_out = 0;
  std::string first_left_out = {};
};

/// Parameters, persistent buffers, children; versions for `_metadata` come from
/// a table of PyTorch's classes. Ownership: shares the storages.
/// Errors: kNotFound (E_NO_MODEL; E_NO_KEY for `key`), kInvalidArgument
/// (E_NO_MODEL) if several models are there, kUnsafe (E_LIMIT) if shared parts
/// expand without end.
Result<ExtractedModel> extract_model(
    const Value& root,
    const ExtractOptions& options = {});

} // namespace lockstep::ckpt
