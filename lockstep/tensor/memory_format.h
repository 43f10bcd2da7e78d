// SPDX-License-Identifier: BSD-3-Clause
//
// Memory formats of whole modules, as Python's `module.to(memory_format=...)`.
//   to_memory_format(*net, at::MemoryFormat::ChannelsLast);
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>

namespace lockstep {

/// Lays out the parameters and buffers of `module` in `format`: ChannelsLast
/// those of four dimensions, ChannelsLast3d of five, others both. Values, names
/// and the parameters' identity stay. Call it before optimizers and replicas
/// are made. The file written from either layout holds the same values.
void to_memory_format(torch::nn::Module& module, at::MemoryFormat format);

/// Python's `tensor.to(memory_format=...)`: the tensor itself if it lies so.
/// With one channel `contiguous` is another thing: packed numbers have channels
/// last, too, but kernels that ask for a tensor's format take it for packed.
at::Tensor in_memory_format(const at::Tensor& tensor, at::MemoryFormat format);

} // namespace lockstep
