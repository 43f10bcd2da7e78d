// SPDX-License-Identifier: BSD-3-Clause
//
// What a program does with a checkpoint it has opened: everything that depends
// on the file's content and must hold for hostile ones.
#pragma once

#include "lockstep/ckpt/load.h"

namespace lockstep::fuzz {

/// Summarises and prints `file`, and reads the first and last element of each
/// tensor. Errors of these steps are fine; a crash, a sanitizer's report or
/// unbounded memory is the finding.
void exercise(const ckpt::Checkpoint& file);

/// Prints the value and names its tensors.
void exercise(const ckpt::Value& root);

} // namespace lockstep::fuzz
