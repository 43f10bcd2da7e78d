// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/two_sided_groups.h"

#include <algorithm>
#include <optional>
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

const Tensors& params_of(const ParamGroup& group) {
  return group.params;
}

// Which of `seen` each of `theirs` is: the one with a parameter of it, else the
// one in its place, whose parameters were all exchanged; nothing for a new one.
using Origins = std::vector<std::optional<std::size_t>>;
Origins origins_of(
    const std::vector<ParamGroup>& theirs,
    const std::vector<ParamGroup>& seen) {
  Origins origins(theirs.size());
  std::vector<bool> is_found(seen.size());
  const auto find = [&](std::size_t i, std::size_t s) {
    origins[i] = s;
    is_found[s] = true;
  };
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    for (std::size_t s = 0; s < seen.size() && !origins[i]; ++s) {
      if (!is_found[s] && share_any(theirs[i].params, seen[s].params)) {
        find(i, s);
      }
    }
  }
  for (std::size_t i = 0; i < std::min(theirs.size(), seen.size()); ++i) {
    if (!origins[i] && !is_found[i]) {
      find(i, i);
    }
  }
  return origins;
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
  const bool is_known =
      std::ranges::equal(seen_, theirs, &are_same, &params_of, &params_of);
  if (is_known || groups.size() < seen_.size()) {
    return; // a step refuses groups that are gone from ours
  }
  const Origins origins = origins_of(theirs, seen_);
  const std::size_t known = seen_.size();
  for (std::vector<ParamGroup>* const list : {&groups, &given_, &seen_}) {
    std::vector<ParamGroup> now;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const auto& origin = origins[i];
      now.push_back(origin ? list->at(*origin) : theirs[i]);
      if (origin && !are_same(seen_[*origin].params, theirs[i].params)) {
        set_params(now.back(), theirs[i].params);
      }
    }
    const auto own = list->begin() + static_cast<std::ptrdiff_t>(known);
    now.insert(now.end(), own, list->end());
    *list = std::move(now);
  }
}

void TwoSidedGroups::take(const std::vector<ParamGroup>& theirs) {
  if (groups.size() < seen_.size()) {
    return;
  }
  const std::size_t known = std::min(seen_.size(), theirs.size());
  for (std::size_t i = 0; i < known; ++i) {
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
  const std::size_t count =
      std::min({groups.size(), seen_.size(), theirs.size()});
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
