// SPDX-License-Identifier: BSD-3-Clause
//
// Reads safetensors files: a row of format_table.cpp.
#pragma once

#include "lockstep/ckpt/format.h"

namespace lockstep::ckpt {

/// Attribute of the root that holds `__metadata__`, a dict of strings.
inline constexpr const char* kSafetensorsMetadata = "__metadata__";

/// True if eight bytes that are not text are followed by an object.
Result<bool> claims_safetensors(const ReadInput& input);

/// The root is a dict of lazy tensors, in the order of their bytes; an
/// OrderedDict with the attribute `__metadata__` if the file has any, and with
/// `_metadata` if it was made of a state_dict that had it.
/// Errors: as `read_safetensors_header`.
Result<Checkpoint> read_safetensors(const ReadInput& input);

} // namespace lockstep::ckpt
