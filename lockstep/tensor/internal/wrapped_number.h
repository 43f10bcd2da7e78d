// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers as Python passes them to operators.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>

namespace lockstep {

/// `number` as a tensor without dimensions that takes part in type promotion as
/// a number: what `t.mul_(0.9)` gives the operator in Python. LibTorch's
/// overload for a Scalar rounds the number to bfloat16 before a product with a
/// tensor of that type.
inline at::Tensor wrapped_number(const c10::Scalar& number) {
  at::Tensor tensor = at::scalar_tensor(
      number,
      at::TensorOptions().dtype(
          number.isFloatingPoint() ? at::kDouble
          : number.isBoolean()     ? at::kBool
          : number.isComplex()     ? at::kComplexDouble
                                   : at::kLong));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

} // namespace lockstep
