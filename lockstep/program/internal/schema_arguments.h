// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments of a node, made as the operator's schema wants them: a whole
// number for a tensor becomes a tensor, for a float a float, for int[2] a pair.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <ATen/core/function_schema.h>

#include "lockstep/ckpt/formats/exported/exported_graph.h"
#include "lockstep/program/internal/block.h"

namespace lockstep::program {

/// The slots of a graph's values by name.
using Names = std::map<std::string, Slot, std::less<>>;

/// The argument `value` as `wanted` has it. `place` stands in errors.
/// Errors: throws kUnsupported or kCorrupt (E_PROGRAM) for a value that does
/// not fit.
Input make_input(
    const c10::Argument& wanted,
    const ckpt::ExportedArgument& value,
    const Names& names,
    std::string_view place);

/// A value of the graph as it is: a named one, a number, a text, None.
Input make_plain_input(
    const ckpt::ExportedArgument& value,
    const Names& names,
    std::string_view place);

} // namespace lockstep::program
