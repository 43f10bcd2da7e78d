// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a tensor would be changed by values that are written over its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep {

/// Equal bits on the CPU, where memory is dense; else equal numbers. Waits for
/// a device. Both have the same dtype, sizes and device.
bool same_values(const at::Tensor& a, const at::Tensor& b);

/// As far as nobody waits for a device: elsewhere than on the CPU true only for
/// the same memory.
bool surely_same_values(const at::Tensor& a, const at::Tensor& b);

} // namespace lockstep
