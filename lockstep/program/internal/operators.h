// SPDX-License-Identifier: BSD-3-Clause
//
// Which operators a program may call, and what is known of them: a graph is a
// program, so that what touches files or foreign memory is refused.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

namespace lockstep::program {

/// The operator of "torch.ops.aten.conv2d.default", or why there is none.
struct FoundOperator {
  std::optional<c10::OperatorHandle> handle = {};
  /// Empty if there is one: "unknown", "refused: it ...".
  std::string problem = {};
};

/// `allowed`: namespaces ("mylib") and operators ("aten._unsafe_index") beside
/// those that are safe.
FoundOperator find_operator(
    std::string_view target,
    std::span<const std::string> allowed);

/// An argument that says whether a module trains.
struct FlagRow {
  /// "aten::dropout", all overloads.
  std::string_view name = {};
  std::string_view argument = {};
  /// The argument counts only where this one is given; empty: always.
  std::string_view only_with = {};
};

/// The flag of an operator; null if it has none.
const FlagRow* find_flag(const c10::FunctionSchema& schema);

/// True for operators that an export in eval mode has in place of a flag.
bool never_trains(const c10::FunctionSchema& schema);

/// True for operators that train by what they are, not by an argument.
bool is_unswitchable(const c10::FunctionSchema& schema);

} // namespace lockstep::program
