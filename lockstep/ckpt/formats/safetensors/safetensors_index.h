// SPDX-License-Identifier: BSD-3-Clause
//
// Reads weights that lie in several files: `model.safetensors.index.json` or
// `pytorch_model.bin.index.json` names the file of each tensor. A row of
// format_table.cpp.
#pragma once

#include "lockstep/ckpt/format.h"

namespace lockstep::ckpt {

/// True for a JSON object with the word "weight_map".
Result<bool> claims_sharded_index(const ReadInput& input);

/// One dict of all tensors, in the order of the index. Only files beside the
/// index are opened, each once.
/// Errors: kCorrupt (E_INDEX), kNotFound (E_INDEX) for a missing file, and
/// those of the files.
Result<Checkpoint> read_sharded_index(const ReadInput& input);

} // namespace lockstep::ckpt
