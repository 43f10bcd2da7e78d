// SPDX-License-Identifier: BSD-3-Clause
//
// Which tensors our convolutions take. Others are left to LibTorch, which also
// refuses what is wrong.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// Whether `tensor` is a batch of maps, or a weight: four dimensions, not
/// empty, strided, float32 or bfloat16.
inline bool is_a_batch(const at::Tensor& tensor) {
  return tensor.dim() == 4 && tensor.layout() == at::kStrided &&
         tensor.numel() > 0 &&
         (tensor.scalar_type() == at::kFloat ||
          tensor.scalar_type() == at::kBFloat16);
}

/// `tensor` itself if its channels are last already.
inline at::Tensor channels_last(const at::Tensor& tensor) {
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

/// Whether `bias` is undefined, or as `weight` [out, in, kh, kw] needs it.
inline bool is_bias_of(const at::Tensor& weight, const at::Tensor& bias) {
  return !bias.defined() || (bias.scalar_type() == weight.scalar_type() &&
                             bias.sizes() == at::IntArrayRef(weight.size(0)));
}

} // namespace lockstep::kernels
