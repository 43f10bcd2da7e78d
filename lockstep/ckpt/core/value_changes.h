// SPDX-License-Identifier: BSD-3-Clause
//
// What a format changes of the values that it keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What a format makes of values that it has no place for.
enum class ChangeKind : std::uint8_t {
  /// Python attributes of a tensor are left out.
  kTensorAttributes,
  /// A tensor of a class of Python's becomes one of `torch.Tensor`.
  kTensorClass,
  /// A tuple becomes a list.
  kTuple,
  /// The key of a dict becomes text.
  kKey,
  /// A dict, list or tuple without elements is left out.
  kEmpty,
  /// A dict without elements is left out by PyTorch's reader.
  kEmptyInPython,
  /// A value becomes text beside the tensors.
  kText,
};

/// All changes of one kind.
struct ValueChange {
  ChangeKind kind = ChangeKind::kKey;
  std::uint64_t count = 0;
  /// Name of the first value.
  std::string first = {};
};

/// "3 tuples become lists: 'steps' and 2 more".
std::string to_text(const ValueChange& change);

/// Counts them. One of each kind, in the order in which they were met.
class ValueChanges {
 public:
  /// `name` is called for the first of a kind only.
  using Name = std::function<std::string()>;

  void add(ChangeKind kind, const Name& name);
  /// `add` for what the tensor has of its own: attributes, a class.
  void add_tensor(const Tensor& tensor, const Name& name);
  std::vector<ValueChange> take() {
    return std::move(changes_);
  }

 private:
  std::vector<ValueChange> changes_;
};

/// Those of a tree that becomes what `flatten` gives: what lies below the outer
/// dict is a part of names, whatever holds it.
/// Errors: kUnsafe (E_DEPTH, E_LIMIT).
Result<std::vector<ValueChange>> flat_changes(const Value& root);

} // namespace lockstep::ckpt
