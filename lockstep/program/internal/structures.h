// SPDX-License-Identifier: BSD-3-Clause
//
// From arguments to the inputs of a graph, and from its outputs to results, as
// the file's pytree nests them.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "lockstep/ckpt/formats/exported/exported_program.h"
#include "lockstep/program/program.h"

namespace lockstep::program {

/// The arguments in the order of the user's inputs; null where none was given,
/// and the file has a constant.
/// Ownership: views `arguments`.
/// Errors: throws kInvalidArgument (E_PROGRAM_INPUT) for another structure.
std::vector<const ProgramValue*> flatten_arguments(
    const ckpt::ExportedModel& model,
    const ProgramArguments& arguments);

/// What messages and the file's guards call the user's inputs, in their order:
/// "x", "batch['mask'][0]".
std::vector<std::string> input_names(const ckpt::ExportedModel& model);

/// The results, of the user's outputs in order. Errors: throws kUnsupported
/// (E_PROGRAM) for a value of a type that `ProgramValue` does not have.
ProgramValue build_results(
    const ckpt::ExportedModel& model,
    std::vector<c10::IValue> outputs);

/// A value of the graph. Errors: as `build_results`.
ProgramValue to_program_value(c10::IValue value);

} // namespace lockstep::program
