// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/grad_mode.h>

#include "lockstep/tensor/modules.h"

namespace lockstep {

void to_memory_format(torch::nn::Module& module, at::MemoryFormat format) {
  const at::NoGradGuard no_grad;
  const auto has_format = [&](std::int64_t dimensions) {
    return (dimensions == 4 && format != at::MemoryFormat::ChannelsLast3d) ||
           (dimensions == 5 && format != at::MemoryFormat::ChannelsLast);
  };
  const auto lay_out = [&](at::Tensor& tensor) {
    if (tensor.defined() && has_format(tensor.dim())) {
      tensor.set_data(in_memory_format(tensor, format));
    }
  };
  for (at::Tensor& parameter : module.parameters()) {
    lay_out(parameter);
  }
  for (at::Tensor& buffer : module.buffers()) {
    lay_out(buffer);
  }
}

at::Tensor in_memory_format(const at::Tensor& tensor, at::MemoryFormat format) {
  return tensor.to(tensor.scalar_type(), false, false, format);
}

} // namespace lockstep
