// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/memory_format.h"

#include <ATen/core/grad_mode.h>

namespace lockstep {

void to_memory_format(torch::nn::Module& module, at::MemoryFormat format) {
  const at::NoGradGuard no_grad;
  const std::int64_t dimensions =
      format == at::MemoryFormat::ChannelsLast3d ? 5 : 4;
  const auto lay_out = [&](at::Tensor& tensor) {
    if (tensor.defined() && tensor.dim() == dimensions) {
      tensor.set_data(tensor.contiguous(format));
    }
  };
  for (at::Tensor& parameter : module.parameters()) {
    lay_out(parameter);
  }
  for (at::Tensor& buffer : module.buffers()) {
    lay_out(buffer);
  }
}

} // namespace lockstep
