// SPDX-License-Identifier: BSD-3-Clause
//
// One row of the formats, fuzzed.
#pragma once

#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::fuzz {

/// Opens `bytes` as this format, if it claims them, and looks at all of it.
/// Checksums are off, or no damaged byte would get past them.
void read_as(const ckpt::Format& format, ByteSpan bytes);

} // namespace lockstep::fuzz
