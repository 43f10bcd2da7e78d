// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that LibTorch's pickler writes around containers, so that their element
// types survive: the container alone is the value.
#pragma once

#include "lockstep/ckpt/pickle/global_calls.h"

namespace lockstep::ckpt {

/// `torch.jit._pickle.restore_type_tag(value, 'Dict[str, Tensor]')`.
CallResult call_restore_type_tag(const Tuple& args);

/// `torch.jit._pickle.build_intlist([1, 2])` and those of other types.
CallResult call_typed_list(const Tuple& args);

} // namespace lockstep::ckpt
