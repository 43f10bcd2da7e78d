// SPDX-License-Identifier: BSD-3-Clause
//
// Python's functions of numbers that graphs of exported programs call: sizes
// are added, divided and compared with Python's rules.
#pragma once

#include <string_view>

#include "lockstep/program/internal/block.h"

namespace lockstep::program {

/// A function and how many numbers it takes.
struct NumberRow {
  std::string_view target = {};
  std::size_t arguments = 0;
  NumberFunction function = nullptr;
};

/// "_operator.floordiv", "torch.sym_max", "math.trunc"; null if unknown.
const NumberRow* find_number_function(std::string_view target);

} // namespace lockstep::program
