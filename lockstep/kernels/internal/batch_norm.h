// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation in place of LibTorch's, on the CPU and on CUDA devices,
// with what follows it in the same passes through memory
// (tensor/norm_relu.h). Who asks for it: install.h.
//
// Note [Batch norm in autograd]
// A layer's forward ends in aten::_batch_norm_impl_index, which chooses between
// libraries and has no formula of its own for gradients: the operations that it
// calls do. Ours takes its place, also for layers of other programs, with one
// node for normalisation, addition and ReLU; what it cannot do it hands on. A
// layer whose statistics are those of all ranks never gets here.
#pragma once

#include <torch/library.h>

namespace lockstep::kernels {

/// Adds the operation.
void add_batch_norms(torch::Library& library);

} // namespace lockstep::kernels
