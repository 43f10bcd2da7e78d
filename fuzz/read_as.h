// SPDX-License-Identifier: BSD-3-Clause
//
// One row of the readers, fuzzed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::fuzz {

/// Opens `n` bytes as this format ("zip", a name of `format_readers`) and looks
/// at all of it. Checksums are off, or no damaged byte would get past them.
void read_as(const char* format, const std::uint8_t* data, std::size_t n);

} // namespace lockstep::fuzz
