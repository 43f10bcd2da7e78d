// SPDX-License-Identifier: BSD-3-Clause
//
// The part of a convolution's weight that one product takes.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/internal/convolution_terms.h"

namespace lockstep::kernels {

/// What all outputs of `meeting` have to do with all its pixels:
/// [outputs * out, pixels * in] if `layout` is ChannelsLast, and
/// [out * outputs, in * pixels] if not, so that activations fit it as they lie
/// in memory. A part of `weight` itself where it can be.
/// Shape: `weight` [out, in, kh, kw], float32 or bfloat16.
at::Tensor pack_weight(
    const at::Tensor& weight,
    const Meeting& meeting,
    const TapTable& taps,
    at::MemoryFormat layout);

} // namespace lockstep::kernels
