// SPDX-License-Identifier: BSD-3-Clause
//
// Is an archive a TorchScript program, and of which age?
#pragma once

#include <string_view>

#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// Who wrote the program, in words; empty for an archive that is none. What
/// has such records in any letter case is what `torch.load` hands to
/// `torch.jit.load`.
std::string_view script_era(const ZipReader& zip);

} // namespace lockstep::ckpt
