// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/zero_redundancy_optimizer.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/convert.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/internal/two_sided_groups.h"

namespace lockstep {
namespace {

using ckpt::Value;

[[noreturn]] void refuse_state(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "dist.zero",
       .message = std::move(message),
       .hint = "load the state of an optimizer with the same parameters",
       .detail = "E_BAD_STATE"});
}

const Value& entry(const Value& state, const char* key) {
  const Value* value = state.find(key);
  if (value == nullptr) {
    refuse_state(format("the optimizer's state has no '{}'", key));
  }
  return *value;
}

constexpr std::string_view kNames = "param_names";

/// A group's options, with `params` for its parameters, and their names as in
/// `named`, where that has any.
Value with_params(
    const Value& group,
    const std::vector<std::int64_t>& params,
    const ParamGroup& named) {
  Value changed = ckpt::Dict();
  if (const ckpt::Dict* dict = group.as_dict()) {
    for (const auto& [key, value] : dict->items) {
      changed.set(key, value);
    }
  }
  if (const Value* names = named.find(kNames)) {
    changed.set(std::string(kNames), *names);
  }
  changed.set("params", params);
  return changed;
}

/// Parameters are matched by position.
void check_names(const Value& saved, const ParamGroup& group) {
  const Value* names = saved.find(kNames);
  if (names != nullptr && group.find(kNames) != nullptr &&
      !group.has(kNames, *names)) {
    refuse_state(
        "loaded state dict names the parameters of a group otherwise, or in "
        "another order");
  }
}

/// The numbers that a rank's own optimizer gives its parameters: a group of
/// which it has none holds one that is empty.
template <class Use>
void number_own(const std::vector<std::vector<std::int64_t>>& part, Use use) {
  std::int64_t own = 0;
  for (const auto& group : part) {
    for (const std::int64_t number : group) {
      use(own++, number);
    }
    own += group.empty() ? 1 : 0;
  }
}

} // namespace

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(
    Params params,
    const MakeOptimizer& make,
    dist::ProcessGroup group)
    : group_(dist::group_or_default(std::move(group))),
      both_(std::make_unique<TwoSidedGroups>("the optimizer within")) {
  both_->groups = std::move(params).groups();
  share_out();
  std::vector<ParamGroup> own;
  own.reserve(both_->groups.size());
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    own.push_back(own_group(i));
  }
  own_ = make(Params(std::move(own)));
  if (own_ == nullptr || own_->param_groups().size() != both_->groups.size()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.zero",
         .message = format(
             "the optimizer that was made has {}, expected {}",
             own_ == nullptr
                 ? "no parameter groups"
                 : counted(own_->param_groups().size(), "parameter group"),
             both_->groups.size()),
         .hint = "make it of all groups of the Params that it is given",
         .detail = "E_ZERO_GROUPS"});
  }
  take_options();
}

ZeroRedundancyOptimizer::~ZeroRedundancyOptimizer() = default;

std::vector<ParamGroup>& ZeroRedundancyOptimizer::param_groups() noexcept {
  take_changes();
  return both_->groups;
}

const std::vector<ParamGroup>& ZeroRedundancyOptimizer::param_groups()
    const noexcept {
  take_changes();
  return both_->groups;
}

/// Those of this rank's own optimizer, with its defaults.
void ZeroRedundancyOptimizer::take_options() {
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    const Value* names = both_->groups[i].find(kNames);
    ParamGroup taken{.options = own_->param_groups()[i].options};
    if (names != nullptr) {
      taken.set(kNames, *names);
    }
    both_->groups[i].options = std::move(taken.options);
  }
  both_->mark_as_seen(own_groups());
}

/// The largest first, each to the rank that has least.
void ZeroRedundancyOptimizer::share_out() {
  parts_.assign(
      static_cast<std::size_t>(group_.size()),
      Part(both_->groups.size()));
  std::vector<std::int64_t> sizes(parts_.size());
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    std::vector<std::int64_t> numbers;
    for (const at::Tensor& param : both_->groups[i].params) {
      numbers.push_back(static_cast<std::int64_t>(params_.size()));
      params_.push_back(param);
    }
    const auto size_of = [this](std::int64_t number) {
      return params_[static_cast<std::size_t>(number)].numel();
    };
    std::ranges::stable_sort(numbers, std::ranges::greater(), size_of);
    for (const std::int64_t number : numbers) {
      const auto least = std::ranges::min_element(sizes);
      parts_[static_cast<std::size_t>(least - sizes.begin())][i].push_back(
          number);
      *least += size_of(number);
    }
  }
}

const ZeroRedundancyOptimizer::Part& ZeroRedundancyOptimizer::own_part() const {
  return parts_[static_cast<std::size_t>(group_.rank())];
}

/// Group `index` as this rank's own optimizer has it.
ParamGroup ZeroRedundancyOptimizer::own_group(std::size_t index) const {
  const std::vector<std::int64_t>& part = own_part()[index];
  ParamGroup own{.options = both_->groups[index].options};
  for (const std::int64_t number : part) {
    own.params.push_back(params_[static_cast<std::size_t>(number)]);
  }
  if (part.empty()) {
    own.params.push_back(at::empty({0}).requires_grad_());
  }
  const Value* names = own.find(kNames);
  if (names == nullptr || names->elements() == nullptr ||
      names->elements()->size() != both_->groups[index].params.size()) {
    return own;
  }
  // The number of the group's first parameter.
  std::int64_t first = 0;
  for (std::size_t i = 0; i < index; ++i) {
    first += std::ssize(both_->groups[i].params);
  }
  ckpt::List own_names;
  for (const std::int64_t number : part) {
    own_names.items.push_back(
        names->elements()->at(static_cast<std::size_t>(number - first)));
  }
  if (part.empty()) {
    own_names.items.emplace_back("");
  }
  own.set(kNames, std::move(own_names));
  return own;
}

/// Refuses groups that were added after the parameters were shared out.
void ZeroRedundancyOptimizer::check_groups() const {
  const std::size_t expected = parts_.front().size();
  const auto check = [&](std::size_t found, std::string_view where) {
    if (found != expected) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "dist.zero",
           .message = format(
               "{} has {}, expected {}: the parameters are shared out when "
               "ZeroRedundancyOptimizer is made",
               where,
               counted(found, "parameter group"),
               expected),
           .hint = "give it all groups, or make another one of them and load "
                   "the state",
           .detail = "E_ZERO_GROUPS"});
    }
  };
  check(both_->groups.size(), "param_groups()");
  check(std::as_const(*own_).param_groups().size(), "the optimizer within");
}

/// The groups that this rank's own optimizer was made of, without later ones.
std::vector<ParamGroup> ZeroRedundancyOptimizer::own_groups() const {
  std::vector<ParamGroup> own = std::as_const(*own_).param_groups();
  own.resize(parts_.front().size());
  return own;
}

std::vector<ParamGroup> ZeroRedundancyOptimizer::take_changes() const {
  std::vector<ParamGroup> own = own_groups();
  both_->take(own);
  return own;
}

void ZeroRedundancyOptimizer::set_options() {
  check_groups();
  both_->refuse_two_changes(take_changes());
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    own_->param_groups()[i].options = own_group(i).options;
  }
  both_->mark_as_seen(own_groups());
}

void ZeroRedundancyOptimizer::step() {
  set_options();
  own_->step();
  const at::NoGradGuard no_grad;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    for (const auto& numbers : parts_[rank]) {
      for (const std::int64_t number : numbers) {
        at::Tensor param = params_[static_cast<std::size_t>(number)].detach();
        group_.broadcast(param, static_cast<int>(rank));
      }
    }
  }
}

void ZeroRedundancyOptimizer::zero_grad(bool set_to_none) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& param : params_) {
    at::Tensor& gradient = param.mutable_grad();
    if (!gradient.defined()) {
      continue;
    }
    if (set_to_none) {
      gradient.reset();
    } else {
      gradient.detach_().zero_();
    }
  }
}

void ZeroRedundancyOptimizer::consolidate_state_dict(int to) {
  if (group_.impl().has_python_ranks) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "dist.zero",
         .message = "the state cannot be collected beside Python's ranks",
         .hint = "save the parameters alone, or train with C++ ranks",
         .detail = "E_NOT_CONSOLIDATED"});
  }
  set_options();
  const auto states = dist::gather_object(group_, own_->state_dict(), to);
  consolidated_.reset();
  if (group_.rank() != to) {
    return;
  }
  std::map<std::int64_t, Value> entries; // by number
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    const Value& state = entry(states[rank], "state");
    number_own(parts_[rank], [&](std::int64_t own, std::int64_t number) {
      if (const Value* found = state.find(own)) {
        entries[number] = *found;
      }
    });
  }
  Value state = ckpt::Dict();
  for (const auto& [number, value] : entries) {
    state.set(number, value);
  }
  const std::vector<ckpt::Value>* own_groups =
      entry(states[static_cast<std::size_t>(to)], "param_groups").elements();
  ckpt::List groups;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    std::vector<std::int64_t> numbers(both_->groups[i].params.size());
    std::ranges::generate(numbers, [&] { return next++; });
    groups.items.push_back(
        with_params(own_groups->at(i), numbers, both_->groups[i]));
  }
  consolidated_ =
      Value::dict({{"state", state}, {"param_groups", std::move(groups)}});
}

Value ZeroRedundancyOptimizer::state_dict() const {
  if (!consolidated_) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.zero",
         .message = format(
             "Optimizer state has not been consolidated on this rank. Please "
             "call `consolidate_state_dict(to={})` on all ranks beforehand if "
             "you meant to save the global state.",
             group_.rank()),
         .detail = "E_NOT_CONSOLIDATED"});
  }
  return *consolidated_;
}

void ZeroRedundancyOptimizer::load_state_dict(const Value& given) {
  const auto given_groups = entry(given, "param_groups").elements();
  if (given_groups == nullptr || given_groups->size() != both_->groups.size()) {
    refuse_state(
        "loaded state dict has a different number of parameter groups");
  }
  std::vector<std::int64_t> saved_numbers; // by position
  ckpt::List groups;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < both_->groups.size(); ++i) {
    const auto numbers = entry(given_groups->at(i), "params").elements();
    if (numbers == nullptr ||
        numbers->size() != both_->groups[i].params.size()) {
      refuse_state(
          "loaded state dict contains a parameter group that doesn't match "
          "the size of optimizer's group");
    }
    check_names(given_groups->at(i), both_->groups[i]);
    for (const Value& number : *numbers) {
      saved_numbers.push_back(number.as_int() ? *number.as_int() : -1);
    }
    std::vector<std::int64_t> own(
        std::max<std::size_t>(own_part()[i].size(), 1));
    std::ranges::generate(own, [&] { return next++; });
    groups.items.push_back(with_params(given_groups->at(i), own, own_group(i)));
  }
  Value state = ckpt::Dict();
  number_own(own_part(), [&](std::int64_t own, std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    if (const Value* found = entry(given, "state").find(saved_numbers[at])) {
      state.set(own, *found);
    }
  });
  own_->load_state_dict(
      Value::dict({{"state", state}, {"param_groups", std::move(groups)}}));
  take_options();
  consolidated_.reset();
}

void ZeroRedundancyOptimizer::use_workers(Workers workers) {
  own_->use_workers(std::move(workers));
}

} // namespace lockstep
