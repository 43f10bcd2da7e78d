// SPDX-License-Identifier: BSD-3-Clause
//
// Splitting a batch over devices and joining the results, as in
// nn.DataParallel. Tensors travel in flat lists; structures of tensors are
// taken apart above.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "lockstep/tensor/structure.h"

namespace lockstep::parallel {

/// One list per device used: chunks of each input along `dim`, on that device.
/// Pieces have ceil(N / devices) rows, so 10 rows over 4 devices give 3, 3, 3,
/// 1 and 2 rows over 4 devices give two lists. Undefined tensors are repeated;
/// if all are, there is one list per device. Without inputs: one empty list.
/// Gradients flow back to `inputs`. Chunks that come from the host are copied
/// in `streams`, one per device, if there are any (copy_in_stream of
/// device/internal/streams.h), else in the caller's.
/// Ownership: a chunk on the input's own device shares its memory.
/// Errors: throws kInvalidArgument if inputs give different numbers of pieces
/// (PyTorch drops rows there), and what torch::chunk throws.
std::vector<TensorList> scatter(
    const TensorList& inputs,
    std::span<const c10::Device> devices,
    std::int64_t dim = 0,
    std::span<const c10::Stream> streams = {});

/// Replicas' results can be joined if they have the same structure, in words.
/// Errors: throws kInvalidArgument without any, kMismatch for the first place
/// that differs from place 0.
void check_same_forms(std::span<const std::string> forms);

/// Joins one output of all replicas along `dim` on `device`. Scalars become a
/// vector, with PyTorch's warning; an undefined first part gives an undefined
/// result. The result never shares memory with a part; gradients flow to them.
at::Tensor
gather(const TensorList& parts, c10::Device device, std::int64_t dim = 0);

} // namespace lockstep::parallel
