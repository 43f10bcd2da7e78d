// SPDX-License-Identifier: BSD-3-Clause
//
// The known calls of a pickle that make plain values: containers, Size,
// device, bytes. Each takes the tuple of arguments and gives the value, or
// nothing when the arguments have a form it does not know (kept as `Object`).
#pragma once

#include <memory>
#include <optional>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The value, nothing to keep the call as it is, or why it cannot be.
using CallResult = Result<std::optional<Value>>;

/// `OrderedDict()`, `OrderedDict([[key, value], ...])`.
CallResult call_ordered_dict(const Tuple& args);
/// `Counter({element: count})`.
CallResult call_counter(const Tuple& args);
/// `set([...])`.
CallResult call_set(const Tuple& args);
/// `torch.Size((1, 2))`.
CallResult call_size(const Tuple& args);
/// `torch.device('cuda', 1)`, also `('cuda:1')`.
CallResult call_device(const Tuple& args);
/// `complex(1.0, 2.0)`.
CallResult call_complex(const Tuple& args);
/// `_codecs.encode('text', 'latin1')`: how protocol 2 spells bytes.
CallResult call_encode(const Tuple& args);
/// `bytes()`.
CallResult call_bytes(const Tuple& args);

// Modules that pickle themselves as a call. Python's call gives them what every
// other module has as its state, so they get it here: `is_module` knows them.

/// `OptimizedModule(module, context)` of torch.compile.
CallResult call_optimized_module(const Tuple& args);
/// `reduce_graph_module(state, imports)` of torch.fx.
CallResult call_graph_module(const Tuple& args);

// LibTorch's pickler writes calls around containers, so that their element
// types survive: the container alone is the value.

/// `torch.jit._pickle.restore_type_tag(value, 'Dict[str, Tensor]')`.
CallResult call_restore_type_tag(const Tuple& args);

/// `torch.jit._pickle.build_intlist([1, 2])` and those of other types.
CallResult call_typed_list(const Tuple& args);

} // namespace lockstep::ckpt
