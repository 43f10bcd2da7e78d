// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/schedule_options.h"

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {

void refuse_schedule(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.schedule",
       .message = std::move(message),
       .hint = std::move(hint)});
}

std::int64_t require_positive(std::string_view name, std::int64_t value) {
  if (value <= 0) {
    refuse_schedule(
        format("Expected positive integer {}, but got {}", name, value));
  }
  return value;
}

std::vector<double> spread(
    std::string_view name,
    const std::vector<double>& values,
    std::size_t num_groups) {
  if (values.size() == 1) {
    return std::vector<double>(num_groups, values[0]);
  }
  if (values.size() != num_groups) {
    refuse_schedule(format(
        "{} must have the same length as optimizer.param_groups. {} has {} "
        "values, param_groups has {}.",
        name,
        name,
        values.size(),
        num_groups));
  }
  return values;
}

bool uses_beta1(const ParamGroup& group) {
  const bool use_beta1 = group.find("betas") != nullptr;
  if (!use_beta1 && group.find("momentum") == nullptr) {
    refuse_schedule(
        "optimizer must support momentum or beta1 with `cycle_momentum` option "
        "enabled");
  }
  return use_beta1;
}

void set_momentum(ParamGroup& group, bool use_beta1, double momentum) {
  if (use_beta1) {
    group.set("betas", ckpt::Value::tuple({momentum, group.betas().second}));
  } else {
    group.set("momentum", momentum);
  }
}

} // namespace lockstep::internal
