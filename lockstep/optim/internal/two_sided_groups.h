// SPDX-License-Identifier: BSD-3-Clause
//
// Parameter groups of an optimizer around another one. Our schedules change the
// outer one's; LibTorch's, or whoever kept a pointer, change the inner one's.
// For who writes such a wrapper:
//   both.take(inner_groups());
//   both.refuse_two_changes(inner_groups());
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// Threads: one at a time.
class TwoSidedGroups {
 public:
  /// `inner` names the other optimizer in errors.
  explicit TwoSidedGroups(std::string_view inner) : inner_(inner) {}

  /// Ours.
  std::vector<ParamGroup> groups = {};

  /// Both sides have told each other their changes; theirs are `theirs` now.
  void mark_as_seen(std::vector<ParamGroup> theirs);
  /// Takes over which groups and parameters theirs have now. For sides that
  /// have the same parameters; before `take`.
  void take_params(const std::vector<ParamGroup>& theirs);
  /// Takes over what changed in theirs alone, and groups that they added.
  void take(const std::vector<ParamGroup>& theirs);
  /// Errors: throws kInvalidArgument if both sides changed one option since
  /// `mark_as_seen`, to different values, and for parameters that were changed
  /// in ours.
  void refuse_two_changes(const std::vector<ParamGroup>& theirs) const;

 private:
  [[nodiscard]] bool is_changed_here(std::size_t group, std::string_view name)
      const;

  std::string_view inner_;
  /// Theirs and ours at `mark_as_seen`.
  std::vector<ParamGroup> seen_ = {};
  std::vector<ParamGroup> given_ = {};
};

} // namespace lockstep
