// SPDX-License-Identifier: BSD-3-Clause
//
// Memory formats of whole modules, as Python's `module.to(memory_format=...)`.
//   to_memory_format(*net, at::MemoryFormat::ChannelsLast);
#pragma once

#include <c10/core/MemoryFormat.h>
#include <torch/nn/module.h>

namespace lockstep {

/// Lays out the parameters and buffers of `module` that have four dimensions
/// (five for ChannelsLast3d) in `format`; values, names and the parameters'
/// identity stay. Call it before optimizers and replicas are made. The file
/// written from either layout holds the same values.
void to_memory_format(torch::nn::Module& module, at::MemoryFormat format);

} // namespace lockstep
