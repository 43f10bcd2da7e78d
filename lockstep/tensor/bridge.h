// SPDX-License-Identifier: BSD-3-Clause
//
// Between live tensors and the value tree of checkpoint files. Nothing is
// copied where memory can be shared.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/ckpt/value.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

/// A file tensor that aliases `tensor`'s storage (a CPU tensor; tensors of
/// other devices are copied to the CPU first). Tensors that share a storage
/// keep sharing it when converted through one `ValueBuilder`.
class ValueBuilder {
 public:
  ValueBuilder();
  ~ValueBuilder();
  ValueBuilder(const ValueBuilder&) = delete;
  ValueBuilder& operator=(const ValueBuilder&) = delete;

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

/// The tensor, aliasing the file's (privately mapped) bytes.
/// Errors: throws what loading the bytes returned; kUnsupported for a dtype
/// LibTorch does not have.
at::Tensor to_tensor(const ckpt::Tensor& tensor);

/// The weights in `value`, a dict of tensors. A `_metadata` attribute becomes
/// `versions`. Errors: throws kMismatch with PyTorch's text
/// ("Expected state_dict to be dict-like, got <class 'list'>.").
StateDict to_state_dict(const ckpt::Value& value);

} // namespace lockstep
