// SPDX-License-Identifier: BSD-3-Clause
//
// A tensor's elements on standard output: as CSV for people and spreadsheets,
// as an npy file for NumPy. Written block by block.
#pragma once

#include "lockstep/ckpt/load.h"

namespace lockstep::cli {

/// One line for each row: the last dimension's elements, separated by commas;
/// a vector has one element in each line.
/// Errors: those of the storage; kUnsafe (E_LIMIT).
Status print_csv(const ckpt::Tensor& tensor, const ckpt::Limits& limits);

/// The bytes of an npy file. Errors: as `print_csv`; kInvalidArgument if
/// standard output is a terminal.
Status print_npy(const ckpt::Tensor& tensor, const ckpt::Limits& limits);

} // namespace lockstep::cli
