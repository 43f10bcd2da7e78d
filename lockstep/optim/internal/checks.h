// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of options and gradients that the optimizers share, with PyTorch's
// texts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::internal {

/// Throws kInvalidArgument.
[[noreturn]] void refuse_option(std::string message);
/// `message` takes the value. NaN is refused, too.
void check_not_negative(
    const ParamGroup& group,
    std::string_view name,
    FormatPattern<1> message);
/// Options that every optimizer has: maximize, foreach, differentiable, fused.
void check_common(const ParamGroup& group);
/// Throws kUnsupported for a sparse gradient.
void check_dense(const at::Tensor& grad, std::string_view optimizer);
/// Throws kUnsupported for a complex parameter.
void check_real(const at::Tensor& param);
/// Throws kUnsupported unless the fused kernels take `param`.
void check_fused(const at::Tensor& param);
/// Dtype of Python's `step`: float32 unless the default dtype is float64.
at::ScalarType step_dtype(bool is_fused);
/// None if empty.
ckpt::Value optional_flag(const std::optional<bool>& flag);
/// Appends what `group` lacks.
void set_missing(ParamGroup& group, std::span<const NamedOption> added);

} // namespace lockstep::internal
