// SPDX-License-Identifier: BSD-3-Clause
//
// The order of the bytes in a zip checkpoint, packed or unpacked: its record
// `byteorder`, which torch 2.1 and newer write.
#pragma once

#include <optional>
#include <string>

#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// Notes the order in `file`: what its record says, or without one what the
/// caller knows. A record that says the other wins, as in PyTorch, with the
/// warning W_BYTEORDER. `record`: its text; nothing if there is none.
/// Errors: kCorrupt (E_BYTEORDER) for a record that says anything else.
Status note_byteorder(
    Checkpoint& file,
    const std::optional<std::string>& record,
    const LoadOptions& options);

/// Makes the storages of a big-endian file read in the order of this machine.
/// Errors: kUnsupported (E_BYTEORDER) for a tensor that views its storage as
/// another type: that does not say what to turn, nor does PyTorch turn it.
Status turn_storages(Checkpoint& file);

} // namespace lockstep::ckpt
