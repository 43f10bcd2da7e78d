// SPDX-License-Identifier: BSD-3-Clause
//
// Small parameters, gradients and texts for the tests of this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::test {

/// Six leaf tensors, the same in tests/oracle/optim_data.py: contiguous,
/// channels-last, empty-dimensional, and larger than a parallel chunk.
std::vector<at::Tensor> make_params();

/// Gradients of step `step`; the fifth parameter has none in step 0, the sixth
/// never.
void set_grads(const std::vector<at::Tensor>& params, int step);

/// The tree as Python's repr, tensors as dtype, shape and digest of the bytes.
std::string repr(const ckpt::Value& value);

/// A deep copy without the entries named `key`, at any depth.
ckpt::Value without(const ckpt::Value& value, std::string_view key);
/// A deep copy of an optimizer's state with `item` in the first parameter's.
ckpt::Value with_state(
    const ckpt::Value& saved,
    std::string_view key,
    const ckpt::Value& item);
/// A group of an optimizer's state, not copied.
ckpt::Value group_of(const ckpt::Value& saved, std::size_t index);

/// Equal shapes and bits.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// Code and message of what `action` throws; empty if it does not.
template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "no error"};
}

} // namespace lockstep::test
