// SPDX-License-Identifier: BSD-3-Clause
//
// One row of the readers, fuzzed.
#pragma once

#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep::fuzz {

/// Opens `bytes` as this format ("zip", a name of `format_readers`) and looks
/// at all of it. Checksums are off, or no damaged byte would get past them.
void read_as(std::string_view format, ByteSpan bytes);

} // namespace lockstep::fuzz
