// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/two_sided_groups.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"

namespace lockstep {
namespace {

using Tensors = std::vector<at::Tensor>;

bool are_same(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const at::Tensor& y) {
    return x.is_same(y);
  });
}

bool share_any(const Tensors& a, const Tensors& b) {
  return std::ranges::any_of(a, [&](const at::Tensor& x) {
    return std::ranges::any_of(b, [&](const at::Tensor& y) {
      return x.is_same(y);
    });
  });
}

// The names of other parameters say nothing of these.
void set_params(ParamGroup& group, const Tensors& params) {
  group.params = params;
  std::erase_if(group.options, [](const NamedOption& option) {
    return option.first == "param_names";
  });
}

[[noreturn]] void refuse_change(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.step",
       .message = std::move(message),
       .hint = std::move(hint)});
}

} // namespace

void TwoSidedGroups::mark_as_seen(std::vector<ParamGroup> theirs) {
  seen_ = std::move(theirs);
  given_ = groups;
}

void TwoSidedGroups::take_params(const std::vector<ParamGroup>& theirs) {
  if (groups.size() < seen_.size()) {
    return; // a step refuses it
  }
  const std::array lists = {&groups, &given_, &seen_};
  while (seen_.size() > theirs.size()) {
    std::size_t gone = 0;
    while (gone < theirs.size() &&
           share_any(seen_[gone].params, theirs[gone].params)) {
      ++gone;
    }
    for (std::vector<ParamGroup>* const list : lists) {
      list->erase(list->begin() + static_cast<std::ptrdiff_t>(gone));
    }
  }
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!are_same(seen_[i].params, theirs[i].params)) {
      for (std::vector<ParamGroup>* const list : lists) {
        set_params((*list)[i], theirs[i].params);
      }
    }
  }
}

void TwoSidedGroups::take(const std::vector<ParamGroup>& theirs) {
  if (groups.size() < seen_.size()) {
    return;
  }
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    for (const auto& [name, value] : theirs[i].options) {
      if (!seen_[i].has(name, value) && !is_changed_here(i, name)) {
        groups[i].set(name, value);
        given_[i].set(name, value);
        seen_[i].set(name, value);
      }
    }
  }
  for (std::size_t i = seen_.size(); i < theirs.size(); ++i) {
    groups.push_back(theirs[i]);
    given_.push_back(theirs[i]);
    seen_.push_back(theirs[i]);
  }
}

void TwoSidedGroups::refuse_two_changes(
    const std::vector<ParamGroup>& theirs) const {
  // How many groups there are is for who knows where they are added.
  const std::size_t count = std::min(groups.size(), seen_.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!are_same(groups[i].params, given_[i].params)) {
      refuse_change(
          format(
              "the parameters of group {} were changed in param_groups(); "
              "expected those of {}",
              i,
              inner_),
          "param_groups() is for options");
    }
    for (const auto& [name, value] : theirs[i].options) {
      if (!seen_[i].has(name, value) && !groups[i].has(name, value)) {
        refuse_change(
            format(
                "'{}' of parameter group {} was changed twice since the last "
                "step: to {} in {}, to {} in param_groups()",
                name,
                i,
                ckpt::to_text(value),
                inner_,
                ckpt::to_text(*groups[i].find(name))),
            "change it in one of them, with the schedulers of one of them");
      }
    }
  }
}

bool TwoSidedGroups::is_changed_here(std::size_t group, std::string_view name)
    const {
  const ckpt::Value* own = groups[group].find(name);
  return own == nullptr || !given_[group].has(name, *own);
}

} // namespace lockstep
