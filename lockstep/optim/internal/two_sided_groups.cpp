// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/two_sided_groups.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/print.h"

namespace lockstep {

void TwoSidedGroups::mark_as_seen(std::vector<ParamGroup> theirs) {
  seen_ = std::move(theirs);
  given_ = groups;
}

void TwoSidedGroups::take(const std::vector<ParamGroup>& theirs) {
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
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    for (const auto& [name, value] : theirs[i].options) {
      if (!seen_[i].has(name, value) && !groups[i].has(name, value)) {
        raise(
            {.code = ErrorCode::kInvalidArgument,
             .op = "optim.step",
             .message = format(
                 "'{}' of parameter group {} was changed twice since the last "
                 "step: to {} in {}, to {} in param_groups()",
                 name,
                 i,
                 ckpt::to_text(value),
                 inner_,
                 ckpt::to_text(*groups[i].find(name))),
             .hint = "change it in one of them, with the schedulers of one of "
                     "them"});
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
