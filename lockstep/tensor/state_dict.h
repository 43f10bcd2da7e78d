// SPDX-License-Identifier: BSD-3-Clause
//
// `state_dict` and `load_state_dict` for any torch::nn::Module, with PyTorch's
// order, texts and rules.
//   StateDict weights = state_dict(*net);
//   LoadReport report = load_state_dict(*net, weights, {.strict = false});
//
// What became of a load: PyTorch's words where something does not fit, a table
// where it may.
//   for (const std::string& line : to_lines(load_weights(*net, file))) { ... }
//
// Between live tensors and the value tree of checkpoint files. Nothing is
// copied where memory can be shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Which tensors may differ between what is loaded and the module, by name or
/// by shape. Those of the module keep their values.
enum class MayDiffer {
  /// None, unless `strict` is off: then names may.
  kNothing,
  /// Those of the module's first and last layer, as for other images and other
  /// classes: each may have one counterpart of another name or shape. A second
  /// head that is called `aux_classifier`, as torchvision's networks for
  /// segmentation have it, does not count: either side may lack it.
  kEnds,
  /// All but one.
  kAnything,
};

/// One tensor that both sides have, in two shapes.
struct ShapeDifference {
  std::string key = {};
  std::vector<std::int64_t> loaded = {};
  std::vector<std::int64_t> module = {};
};

/// What did not match; all lists are empty after a full load.
struct LoadReport {
  /// Units: tensors that were copied into the module.
  std::int64_t taken = 0;
  std::vector<std::string> missing_keys = {};
  std::vector<std::string> unexpected_keys = {};
  /// With `MayDiffer` only; else it is an error.
  std::vector<ShapeDifference> mismatched = {};
  /// With `by_position`: name in the file, name in the model, in order.
  std::vector<std::pair<std::string, std::string>> mapping = {};
  /// What `load_weights` chose: the entry of the file, how names were fitted.
  std::vector<std::string> notes = {};

  /// The tensors of the module that are as new: missing, or of another shape.
  [[nodiscard]] std::vector<std::string> made_new() const;
};

/// Python's text: `<All keys matched successfully>` or
/// `_IncompatibleKeys(missing_keys=[...], unexpected_keys=[...])`.
std::string to_string(const LoadReport& report);

/// A table: how many tensors were taken; what was chosen; which are new, with
/// both shapes; which of the file were left. At most `shown` names of a kind,
/// then their number; 0: all.
std::vector<std::string> to_lines(
    const LoadReport& report,
    std::size_t shown = 5);

/// True if only ends differ: `MayDiffer::kEnds`. `model_keys` are all of the
/// module's, in order.
bool only_ends_differ(
    const LoadReport& report,
    const std::vector<std::string>& model_keys);

/// What a load cannot do, in PyTorch's words.
struct LoadProblems {
  /// Of the module: "ResNet".
  std::string class_name = {};
  std::vector<std::string> missing_keys = {};
  std::vector<std::string> unexpected_keys = {};
  /// One text per tensor that cannot be copied.
  std::vector<std::string> errors = {};
};

/// "Error(s) in loading state_dict for ResNet:\n\t..."; empty if there is no
/// problem. At most `shown` names of a kind, then their number; 0: all, which
/// is PyTorch's text to the byte.
std::string load_message(const LoadProblems& problems, std::size_t shown);

} // namespace lockstep

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
/// modules.h.
/// Ownership: tensors alias the module's memory and are detached.
StateDict state_dict(const torch::nn::Module& module);

/// A module with buffers that are no part of its state_dict, as those that
/// Python registers with `persistent=False`. Replicas, ranks and `to` treat
/// them as any other buffer.
class UnsavedBuffers {
 public:
  virtual ~UnsavedBuffers() = default;
  /// `buffer` is the name of one that the module itself registers.
  [[nodiscard]] virtual bool is_unsaved(std::string_view buffer) const = 0;

 protected:
  UnsavedBuffers() = default;
  UnsavedBuffers(const UnsavedBuffers&) = default;
  UnsavedBuffers(UnsavedBuffers&&) = default;
  UnsavedBuffers& operator=(const UnsavedBuffers&) = default;
  UnsavedBuffers& operator=(UnsavedBuffers&&) = default;
};

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

/// Makes file tensors that alias live ones. Tensors that share a storage keep
/// sharing it when converted through one builder.
class ValueBuilder {
 public:
  ValueBuilder();
  ~ValueBuilder();
  ValueBuilder(const ValueBuilder&) = delete;
  ValueBuilder& operator=(const ValueBuilder&) = delete;

  /// Aliases `tensor`'s storage with its offset and strides; a storage of
  /// another device is copied to the CPU once. `requires_grad` is not kept.
  /// Errors: throws kUnsupported for sparse and quantized tensors.
  ckpt::Value tensor(const at::Tensor& tensor);
  /// OrderedDict with `_metadata`, as Python's `module.state_dict()`.
  ckpt::Value state_dict(const StateDict& weights);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One tensor, one dict: shorthand for a builder used once.
ckpt::Value to_value(const at::Tensor& tensor);
ckpt::Value to_value(const StateDict& weights);

/// Makes tensors of a file's tensors. Those that share a storage in the file
/// share one here when made by one reader.
class TensorReader {
 public:
  TensorReader();
  ~TensorReader();
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  /// The tensor, aliasing the file's (privately mapped) bytes; on the device
  /// that the storage's location names.
  /// Ownership: keeps the mapping alive. Unaligned bytes are copied.
  /// Errors: throws what loading the bytes returned; kCorrupt for a view
  /// outside its storage; kUnsupported for a dtype LibTorch does not have; as
  /// `location_device` for a device that is not here.
  at::Tensor tensor(const ckpt::Tensor& tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Shorthand for a reader used once.
at::Tensor to_tensor(const ckpt::Tensor& tensor);

/// `entry.to<at::Tensor>()`, for one after another without their common
/// storage. Ownership: aliases the file's (privately mapped) bytes where they
/// are aligned, so that a change in place is seen by whoever asks again.
template <>
struct ckpt::FromValue<at::Tensor> {
  static at::Tensor get(const ckpt::Entry& entry) {
    return to_tensor(entry.to<ckpt::Tensor>());
  }
};

/// An int, a float, or a real tensor of one element, as scripts save numbers;
/// nothing for any other value. Errors: as `TensorReader::tensor`.
std::optional<double> number_in(const ckpt::Value& value);

/// The weights in `value`, a dict of tensors. A `_metadata` attribute becomes
/// `versions`. Errors: throws kMismatch with PyTorch's text
/// ("Expected state_dict to be dict-like, got <class 'list'>."), or for an
/// entry that is no tensor.
StateDict to_state_dict(const ckpt::Value& value);

/// As read from a file, where an entry may be no tensor.
struct LooseStateDict {
  /// The tensor of such an entry is undefined.
  StateDict weights = {};
  /// What each entry is, "<class 'int'>" for such an entry; of a piece of a
  /// tensor, which one.
  std::vector<std::string> kinds = {};
};

/// As `to_state_dict`, but keeps entries that are no tensors.
LooseStateDict to_loose_state_dict(const ckpt::Value& value);

/// What Python prints between the quotes of `<class '...'>`.
std::string python_class(const ckpt::Value& value);

} // namespace lockstep
#pragma GCC visibility pop
