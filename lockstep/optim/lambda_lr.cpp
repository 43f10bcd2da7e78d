// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules by functions of the caller's.
#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/optim/internal/schedule_options.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep {

namespace {

/// One function for each group.
std::vector<LrLambda> checked_lambdas(
    std::vector<LrLambda> lambdas,
    std::size_t num_groups) {
  if (lambdas.size() == 1) {
    lambdas.assign(num_groups, LrLambda(lambdas.front()));
  }
  if (lambdas.size() != num_groups) {
    internal::refuse_schedule(format(
        "Expected {} lr_lambdas, but got {}",
        num_groups,
        lambdas.size()));
  }
  for (const LrLambda& lambda : lambdas) {
    if (!lambda) {
      internal::refuse_schedule(
          "lr_lambda should be a function, but got NoneType");
    }
  }
  return lambdas;
}

/// Each of `rates` times what its group's function says of `epoch`.
std::vector<double> by_lambdas(
    std::vector<double> rates,
    const std::vector<LrLambda>& lambdas,
    std::int64_t epoch) {
  if (rates.size() != lambdas.size()) {
    internal::refuse_schedule(format(
        "Expected {} lr_lambdas, but got {}",
        rates.size(),
        lambdas.size()));
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] *= lambdas[i](epoch);
  }
  return rates;
}

std::vector<ckpt::Item> lambda_state(const std::vector<LrLambda>& lambdas) {
  return {{"lr_lambdas", std::vector<ckpt::Value>(lambdas.size())}};
}

void check_lambda_state(
    const ckpt::Value& state,
    std::string_view what,
    std::size_t expected) {
  const internal::StateReader reader(state, what);
  const std::vector<ckpt::Value>& saved = reader.items("lr_lambdas");
  if (saved.size() != expected) {
    internal::mismatch(format(
        "'lr_lambdas' of {}: expected {} values, one per parameter group, got "
        "{}",
        what,
        expected,
        saved.size()));
  }
  for (const ckpt::Value& item : saved) {
    if (!item.is_none()) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "optim.load",
           .message = format(
               "'lr_lambdas' of {}: expected None, got '{}', the attributes of "
               "a callable object",
               what,
               item.type_name()),
           .hint = "give a function that begins with them, and set the entry "
                   "to None"});
    }
  }
}

} // namespace

LambdaLR::LambdaLR(OptimizerRef optimizer, LambdaLROptions options)
    : Scheduler(std::move(optimizer)),
      lambdas_(checked_lambdas(std::move(options.lr_lambda), groups().size())) {
  begin(options.last_epoch);
}

std::vector<double> LambdaLR::get_lr() {
  return by_lambdas(base_lrs(), lambdas_, last_epoch());
}

std::vector<ckpt::Item> LambdaLR::late_state() const {
  return lambda_state(lambdas_);
}

void LambdaLR::load_own_state(const ckpt::Value& state) {
  check_lambda_state(state, "LambdaLR state", lambdas_.size());
}

MultiplicativeLR::MultiplicativeLR(
    OptimizerRef optimizer,
    LambdaLROptions options)
    : Scheduler(std::move(optimizer)),
      lambdas_(checked_lambdas(std::move(options.lr_lambda), groups().size())) {
  begin(options.last_epoch);
}

std::vector<double> MultiplicativeLR::get_lr() {
  return is_initial() ? scaled_lrs(1.0)
                      : by_lambdas(scaled_lrs(1.0), lambdas_, last_epoch());
}

std::vector<ckpt::Item> MultiplicativeLR::late_state() const {
  return lambda_state(lambdas_);
}

void MultiplicativeLR::load_own_state(const ckpt::Value& state) {
  check_lambda_state(state, "MultiplicativeLR state", lambdas_.size());
}

} // namespace lockstep
