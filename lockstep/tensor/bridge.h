// SPDX-License-Identifier: BSD-3-Clause
//
// Between live tensors and the value tree of checkpoint files. Nothing is
// copied where memory can be shared.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/ckpt/convert.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

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
  /// Python's class of each entry, "int" for such an entry.
  std::vector<std::string> classes = {};
};

/// As `to_state_dict`, but keeps entries that are no tensors.
LooseStateDict to_loose_state_dict(const ckpt::Value& value);

/// What Python prints between the quotes of `<class '...'>`.
std::string python_class(const ckpt::Value& value);

} // namespace lockstep
