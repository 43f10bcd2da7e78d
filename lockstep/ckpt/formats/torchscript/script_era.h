// SPDX-License-Identifier: BSD-3-Clause
//
// Is an archive a TorchScript program, of which age, and what belongs to it?
#pragma once

#include <string_view>

#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// Who wrote the program, in words; empty for an archive that is none. What
/// has such records in any letter case is what `torch.load` hands to
/// `torch.jit.load`.
std::string_view script_era(const ZipReader& zip);

/// True for what is left of a program that was cut before the records that
/// `script_era` looks for: one with the code of its classes.
bool has_script_code(const ZipReader& zip);

/// True for the name of a class of a program, "__torch__.Model".
bool is_script_class(std::string_view global);

/// True for a record of a program, such as "code/model.py" or "constants.pkl";
/// others beside the value are notes that somebody put into the file
/// ("extra/notes.json").
bool is_script_record(std::string_view name);

} // namespace lockstep::ckpt
