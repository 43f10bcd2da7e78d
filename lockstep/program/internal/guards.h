// SPDX-License-Identifier: BSD-3-Clause
//
// Conditions between the sizes of a program's inputs, under which its graph is
// the net: a net that branches on a size was exported for one branch.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "lockstep/program/internal/guard_expression.h"

namespace lockstep::program {

/// Compiled once, for all inputs.
class InputGuards {
 public:
  /// `texts`: `ExportedModel::guards`. `names[i]`: of the i-th of the user's
  /// inputs, as `input_names` has them.
  InputGuards(
      const std::vector<std::string>& texts,
      const std::vector<std::string>& names);

  /// What Python checks before it runs such a program, but for conditions that
  /// only keep a size from being 0 or 1, as torch.export usually does.
  /// `inputs`: the user's, in the signature's order.
  /// Errors: throws kMismatch (E_PROGRAM_INPUT), with the condition and the
  /// sizes.
  void check(const std::vector<c10::IValue>& inputs) const;

  /// Conditions that are not checked: of another form than is known.
  [[nodiscard]] const std::vector<std::string>& unread() const {
    return unread_;
  }

 private:
  struct Guard {
    std::string text = {};
    GuardExpression expression = {};
    /// The input of each of its sources.
    std::vector<std::size_t> inputs = {};
  };

  std::vector<Guard> guards_ = {};
  std::vector<std::string> unread_ = {};
};

} // namespace lockstep::program
