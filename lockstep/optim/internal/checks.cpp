// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/checks.h"

#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {

namespace {

[[noreturn]] void refuse_tensor(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "optim.step",
       .message = std::move(message),
       .hint = std::move(hint)});
}

} // namespace

void refuse_option(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.create",
       .message = std::move(message)});
}

void check_not_negative(
    const ParamGroup& group,
    std::string_view name,
    FormatPattern<1> message) {
  const double value = group.number(name);
  if (!(value >= 0)) {
    refuse_option(format(message, shortest(value)));
  }
}

void check_common(const ParamGroup& group) {
  // Reading a flag checks its type.
  const bool is_fused = group.flag("fused");
  static_cast<void>(group.flag("maximize"));
  if (group.flag("differentiable")) {
    refuse_option("`differentiable` is not supported: step() has no gradient");
  }
  if (is_fused && group.flag("foreach")) {
    refuse_option("`fused` and `foreach` cannot be `True` together.");
  }
}

void check_dense(const at::Tensor& grad, std::string_view optimizer) {
  if (grad.is_sparse()) {
    refuse_tensor(
        format("{} does not support sparse gradients", optimizer),
        "make the layer with sparse=false");
  }
}

void check_real(const at::Tensor& param) {
  if (param.is_complex()) {
    refuse_tensor("complex parameters are not supported");
  }
}

void check_fused(const at::Tensor& param) {
  if (!at::isFloatingType(param.scalar_type())) {
    refuse_tensor(format(
        "`fused=True` requires all the params to be floating point Tensors, "
        "got {}",
        std::string(c10::toString(param.scalar_type()))));
  }
}

at::ScalarType step_dtype(bool is_fused) {
  const bool is_double = c10::get_default_dtype_as_scalartype() == at::kDouble;
  return is_double && !is_fused ? at::kDouble : at::kFloat;
}

ckpt::Value optional_flag(const std::optional<bool>& flag) {
  return flag ? ckpt::Value(*flag) : ckpt::Value();
}

void set_missing(ParamGroup& group, std::span<const NamedOption> added) {
  for (const NamedOption& option : added) {
    if (group.find(option.first) == nullptr) {
      group.options.push_back(option);
    }
  }
}

} // namespace lockstep::internal
