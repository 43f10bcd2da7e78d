// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_set>

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {

namespace {

[[noreturn]] void raise_option(
    std::string_view name,
    std::string_view want,
    std::string_view got) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.option",
       .message = format(
           "option '{}' of a parameter group: expected {}, got {}",
           name,
           want,
           got)});
}

std::string type_of(const ckpt::Value* value) {
  return value == nullptr ? "nothing" : std::string(value->type_name());
}

ParamGroup collect(const torch::nn::Module& module, ckpt::List* names) {
  ParamGroup group;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().defined() ||
        !seen.insert(item.value().unsafeGetTensorImpl()).second) {
      continue;
    }
    group.params.push_back(item.value());
    if (names != nullptr) {
      names->items.emplace_back(item.key());
    }
  }
  return group;
}

} // namespace

const ckpt::Value* ParamGroup::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(options, name, &NamedOption::first);
  return found == options.end() ? nullptr : &found->second;
}

double ParamGroup::number(std::string_view name) const {
  const ckpt::Value* value = find(name);
  const auto number =
      value == nullptr ? std::optional<double>() : number_in(*value);
  if (!number) {
    raise_option(name, "a number", type_of(value));
  }
  return *number;
}

bool ParamGroup::flag(std::string_view name) const {
  const ckpt::Value* value = find(name);
  if (value == nullptr || value->is_none()) {
    return false;
  }
  if (value->as_bool() == nullptr) {
    raise_option(name, "True, False or None", type_of(value));
  }
  return *value->as_bool();
}

void ParamGroup::set_lr(double lr) {
  const ckpt::Value* value = find("lr");
  const ckpt::Tensor* kept = value == nullptr ? nullptr : value->as_tensor();
  if (kept == nullptr || kept->numel() != 1) {
    set("lr", lr);
    return;
  }
  const at::NoGradGuard no_grad;
  at::Tensor tensor = to_tensor(*kept);
  set("lr", to_value(tensor.fill_(lr))); // of a file it may be a copy
}

std::pair<double, double> ParamGroup::betas() const {
  const ckpt::Value* value = find("betas");
  const std::vector<ckpt::Value>* items =
      value == nullptr ? nullptr : value->elements();
  const bool is_pair = items != nullptr && items->size() == 2;
  const auto first = is_pair ? number_in((*items)[0]) : std::nullopt;
  const auto second = is_pair ? number_in((*items)[1]) : std::nullopt;
  if (!first || !second) {
    raise_option("betas", "two numbers", type_of(value));
  }
  return {*first, *second};
}

bool ParamGroup::has(std::string_view name, const ckpt::Value& value) const {
  const ckpt::Value* own = find(name);
  return own != nullptr && ckpt::to_text(*own) == ckpt::to_text(value);
}

void ParamGroup::set(std::string_view name, ckpt::Value value) {
  const auto found = std::ranges::find(options, name, &NamedOption::first);
  if (found == options.end()) {
    options.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

Params::Params(const torch::nn::Module& module)
    : groups_{collect(module, nullptr)} {}

Params::Params(std::vector<at::Tensor> tensors)
    : groups_{ParamGroup{.params = std::move(tensors)}} {}

Params::Params(std::vector<ParamGroup> groups) : groups_(std::move(groups)) {}

Params::Params(ParamGroup group) : groups_{std::move(group)} {}

Params::Params(std::initializer_list<at::Tensor> tensors)
    : Params(std::vector<at::Tensor>(tensors)) {}

Params::Params(std::initializer_list<ParamGroup> groups) : groups_(groups) {}

ParamGroup named_parameters(const torch::nn::Module& module) {
  ckpt::List names;
  ParamGroup group = collect(module, &names);
  group.set("param_names", std::move(names));
  return group;
}

std::vector<at::Tensor> trainable_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> params = collect(module, nullptr).params;
  std::erase_if(params, [](const at::Tensor& p) { return !p.requires_grad(); });
  return params;
}

} // namespace lockstep
