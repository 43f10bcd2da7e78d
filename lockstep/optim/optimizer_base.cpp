// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <unordered_set>

#include <ATen/core/grad_mode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/checks.h"
#include "lockstep/optim/internal/packed_state.h"
#include "lockstep/optim/internal/part_runner.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {

namespace {

/// What schedulers keep in a group: allowed in a new group, too.
constexpr std::array<std::string_view, 7> kScheduleOptions = {
    "initial_lr",
    "max_lr",
    "min_lr",
    "max_momentum",
    "base_momentum",
    "swa_lr",
    "param_names"};

[[noreturn]] void refuse(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.add_param_group",
       .message = std::move(message),
       .hint = std::move(hint)});
}

void check_params(const std::vector<at::Tensor>& params) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const at::Tensor& param : params) {
    if (!param.defined()) {
      refuse("optimizer can only optimize Tensors, got an undefined one");
    }
    if (!param.is_leaf() && !param.retains_grad()) {
      refuse("can't optimize a non-leaf Tensor");
    }
    if (!seen.insert(param.unsafeGetTensorImpl()).second) {
      refuse("optimizer contains a parameter group with duplicate parameters");
    }
  }
}

void check_names(const ParamGroup& group, const std::vector<ParamGroup>& all) {
  const ckpt::Value* names = group.find("param_names");
  if (names != nullptr &&
      (names->as_list() == nullptr ||
       names->as_list()->items.size() != group.params.size())) {
    refuse(
        "all optimizer params should be with/without names. Some param names "
        "are missing");
  }
  const bool named = names != nullptr;
  for (const ParamGroup& other : all) {
    if (named != (other.find("param_names") != nullptr)) {
      refuse(format(
          "all optimizer param groups should be with/without names. cannot "
          "add param group {} to the optimizer",
          named ? "with names" : "without names"));
    }
  }
}

void check_disjoint(
    const ParamGroup& group,
    const std::vector<ParamGroup>& all) {
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const ParamGroup& other : all) {
    for (const at::Tensor& param : other.params) {
      taken.insert(param.unsafeGetTensorImpl());
    }
  }
  for (const at::Tensor& param : group.params) {
    if (taken.contains(param.unsafeGetTensorImpl())) {
      refuse("some parameters appear in more than one parameter group");
    }
  }
}

void check_known(
    const ParamGroup& group,
    const std::vector<NamedOption>& defaults) {
  std::vector<std::string> known(
      kScheduleOptions.begin(),
      kScheduleOptions.end());
  for (const NamedOption& option : defaults) {
    known.push_back(option.first);
  }
  for (const NamedOption& option : group.options) {
    if (std::ranges::find(known, option.first) == known.end()) {
      const std::string near = nearest(option.first, known);
      refuse(
          format("unknown option '{}'", escape(option.first)),
          near.empty() ? "" : format("did you mean '{}'?", near));
    }
  }
}

/// Python's order: own options, names, then what the optimizer's options add.
std::vector<NamedOption> merged(
    const ParamGroup& group,
    const std::vector<NamedOption>& defaults) {
  ParamGroup result;
  for (const NamedOption& option : group.options) {
    if (option.first != "param_names") {
      result.set(option.first, option.second);
    }
  }
  if (const ckpt::Value* names = group.find("param_names")) {
    result.set("param_names", *names);
  }
  for (const NamedOption& option : defaults) {
    if (result.find(option.first) == nullptr) {
      result.options.push_back(option);
    }
  }
  return std::move(result.options);
}

} // namespace

std::shared_ptr<Optimizer> OptimizerRef::not_null(
    std::shared_ptr<Optimizer> optimizer) {
  if (optimizer == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.schedule",
         .message = "NoneType is not an Optimizer"});
  }
  return optimizer;
}

at::Tensor& ParamState::operator[](std::string_view key) {
  const auto found = std::ranges::find_if(tensors, [&](const auto& entry) {
    return entry.first == key;
  });
  return found != tensors.end()
             ? found->second
             : tensors.emplace_back(key, at::Tensor()).second;
}

ParamState& StateTable::of(const at::Tensor& param) {
  const auto [place, is_new] =
      index.try_emplace(param.unsafeGetTensorImpl(), entries.size());
  if (is_new) {
    entries.push_back({.param = param});
  }
  return entries[place->second];
}

OptimizerBase::OptimizerBase(
    const OptimizerKind& kind,
    Params params,
    std::vector<NamedOption> defaults)
    : kind_(kind),
      defaults_(std::move(defaults)),
      runner_(std::make_unique<internal::PartRunner>()) {
  // The optimizer's own options first, as in Python: a bad one is an error
  // even if every group replaces it.
  kind_.check({.options = defaults_});
  std::vector<ParamGroup> groups = std::move(params).groups();
  if (groups.empty() || (groups.size() == 1 && groups[0].params.empty())) {
    refuse("optimizer got an empty parameter list");
  }
  for (ParamGroup& group : groups) {
    add_param_group(std::move(group));
  }
}

void OptimizerBase::add_param_group(ParamGroup group) {
  check_params(group.params);
  check_names(group, groups_);
  check_disjoint(group, groups_);
  check_known(group, defaults_);
  group.options = merged(group, defaults_);
  kind_.check(group);
  groups_.push_back(std::move(group));
}

OptimizerBase::~OptimizerBase() = default;

ckpt::Value OptimizerBase::state_dict() const {
  return internal::pack(groups_, state_);
}

void OptimizerBase::load_state_dict(const ckpt::Value& state) {
  auto [groups, table] = internal::unpack(state, groups_, defaults_, kind_);
  groups_ = std::move(groups);
  state_ = std::move(table);
}

void OptimizerBase::use_workers(Workers workers) {
  runner_->use(std::move(workers));
}

void OptimizerBase::step_in_parts(
    const ParamGroup& group,
    bool keeps_state,
    const std::function<void(internal::Part&)>& step) {
  ++step_calls_;
  if (keeps_state) { // what is added moves no other
    state_.entries.reserve(state_.entries.size() + group.params.size());
  }
  std::vector<internal::Update> updates;
  updates.reserve(group.params.size());
  for (const at::Tensor& param : group.params) {
    if (param.grad().defined()) {
      internal::check_dense(param.grad(), kind_.name);
      updates.push_back(
          {.param = param, .state = keeps_state ? &state_.of(param) : nullptr});
    }
  }
  runner_->run(std::move(updates), step);
}

void OptimizerBase::zero_grad(bool set_to_none) {
  const at::NoGradGuard no_grad;
  for (ParamGroup& group : groups_) {
    for (at::Tensor& param : group.params) {
      at::Tensor& grad = param.mutable_grad();
      if (!grad.defined()) {
        continue;
      }
      if (set_to_none) {
        grad.reset();
        continue;
      }
      if (grad.grad_fn() != nullptr) {
        grad.detach_();
      } else {
        grad.requires_grad_(false);
      }
      grad.zero_();
    }
  }
}

} // namespace lockstep
