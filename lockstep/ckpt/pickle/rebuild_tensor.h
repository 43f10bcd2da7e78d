// SPDX-License-Identifier: BSD-3-Clause
//
// The rebuild functions of torch._utils, as data: arguments become a `Tensor`
// whose view was checked against its storage.
#pragma once

#include "lockstep/ckpt/pickle/global_calls.h"

namespace lockstep::ckpt {

/// `_rebuild_tensor(storage, offset, size, stride)`.
/// Errors of all: kCorrupt with E_PICKLE_TYPE, E_TYPE, E_RANK, E_VIEW_NEGATIVE,
/// E_OVERFLOW or E_VIEW_BOUNDS.
CallResult rebuild_tensor(const Tuple& args);
/// The same with `requires_grad, hooks[, metadata]`.
CallResult rebuild_tensor_v2(const Tuple& args);
/// As v2 over an untyped storage, with the dtype after the hooks.
CallResult rebuild_tensor_v3(const Tuple& args);
/// `_rebuild_parameter(data, requires_grad, hooks)`.
CallResult rebuild_parameter(const Tuple& args);
/// The same with the Python attributes of the parameter.
CallResult rebuild_parameter_with_state(const Tuple& args);
/// `Parameter(tensor[, requires_grad])`, how torch 0.x writes one.
CallResult call_parameter(const Tuple& args);
/// `_rebuild_from_type_v2(function, type, args, state)`; a subclass is kept as
/// the tensor's `class_name`. The older `_rebuild_from_type` has the same form.
CallResult rebuild_from_type(const Tuple& args);
/// `_rebuild_qtensor(storage, offset, size, stride, quantizer, requires_grad,
/// hooks)`. Errors: also kCorrupt (E_QPARAMS).
CallResult rebuild_qtensor(const Tuple& args);
/// `_rebuild_sparse_tensor` as LibTorch spells it, `(1, size, requires_grad,
/// indices, values, hooks)`, becomes what Python writes; Python's own form and
/// every other stay as they are.
CallResult rebuild_sparse(const Tuple& args);

/// Hooks that were saved with a tensor become its attribute, as in Python, so
/// that nothing in them is lost. Mostly there are none. Errors: as
/// `joined_state`.
Status keep_hooks(Tensor& tensor, const Value& hooks);

} // namespace lockstep::ckpt
