// SPDX-License-Identifier: BSD-3-Clause
//
// What the file of a program says of it, without loading its weights.
#pragma once

#include <string>
#include <vector>

#include "lockstep/program/program.h"

namespace lockstep {

struct ProgramFacts {
  std::vector<ProgramInput> inputs = {};
  std::vector<ProgramInput> outputs = {};
  /// Arguments that are no tensors, and that the export did not fix.
  std::size_t numbers = 0;
};

/// True for names that end like files of programs: "net.pt2".
bool is_program_file(std::string_view name);

/// Errors: throws as `load_program` for a file that is broken.
ProgramFacts read_program_facts(const std::string& path);

} // namespace lockstep
