// SPDX-License-Identifier: BSD-3-Clause
//
// `state_dict` and `load_state_dict` for any torch::nn::Module, with PyTorch's
// order, texts and rules.
//   StateDict weights = state_dict(*net);
//   LoadReport report = load_state_dict(*net, weights, {.strict = false});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/load_report.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Ordered map from key to tensor, with the versions PyTorch keeps beside it.
struct StateDict {
  std::vector<std::pair<std::string, at::Tensor>> entries = {};
  /// `_metadata`: module path ("" is the root, "layer1.0.bn1") to version.
  /// Empty if the source had none (a plain dict).
  std::vector<std::pair<std::string, std::int64_t>> versions = {};

  /// The tensor under `key`; undefined if there is none.
  [[nodiscard]] at::Tensor get(std::string_view key) const;
  /// The keys, in order.
  [[nodiscard]] std::vector<std::string> keys() const;
};

/// Own parameters, own buffers, then children, depth first; PyTorch's keys.
/// Warns once of a layer that was replaced without `replace_module`:
/// replaced_child.h.
/// Ownership: tensors alias the module's memory and are detached.
StateDict state_dict(const torch::nn::Module& module);

/// How `load_state_dict` treats keys.
struct LoadStateDictOptions {
  /// Missing or unexpected keys are an error.
  bool strict = true;
  /// Removed once from the front of each key that has it: "module.".
  std::string strip_prefix = {};
  /// Put in front of each key.
  std::string add_prefix = {};
  /// The file's names do not count, only order and shapes: the i-th entry goes
  /// to the model's i-th, as far as the shapes leave one way to do so.
  bool by_position = false;
  /// With `by_position`: only the first tensors of the file, that many, go to
  /// the first of the model, whose others stay as they are, as those of a new
  /// head. The report names the rest of both. 0: all.
  std::int64_t first = 0;
  /// What need not fit; then the report says what was taken.
  MayDiffer may_differ = MayDiffer::kNothing;
  /// Of the names that the module has for one tensor, one is enough.
  bool may_share = false;
  /// Units: names of each kind that an error lists before it counts; 0: all,
  /// which is PyTorch's text to the byte.
  std::size_t shown_names = 5;
};

/// Copies `weights` into `module`, cast to the module's dtypes and devices.
/// Everything is checked first: after an error the module is unchanged.
/// Errors: throws kMismatch (E_STATE_DICT) with PyTorch's text (missing,
/// unexpected, shapes);
/// by position also E_AMBIGUOUS and E_NO_MATCH of `ckpt::match_by_position`.
LoadReport load_state_dict(
    torch::nn::Module& module,
    const StateDict& weights,
    const LoadStateDictOptions& options = {});

/// The same from a value of a checkpoint file (`file["state_dict"]`).
LoadReport load_state_dict(
    torch::nn::Module& module,
    const ckpt::Value& weights,
    const LoadStateDictOptions& options = {});

/// Python's class name of a module, "ResNet": what error texts and printing
/// show.
std::string class_name(const torch::nn::Module& module);

/// Removes one leading `prefix` from the keys that have it (module versions,
/// too), as `consume_prefix_in_state_dict_if_present`, but keeps the order.
/// Errors: throws kMismatch if two keys would become equal.
StateDict strip_prefix(const StateDict& weights, std::string_view prefix);
/// Puts `prefix` ("module.") in front of every key.
StateDict add_prefix(const StateDict& weights, std::string_view prefix);

} // namespace lockstep
