// SPDX-License-Identifier: BSD-3-Clause
//
// Integers beyond 64 bits as text.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// As Python prints it, "-1180591620717411303424"; "<int of 100 bytes,
/// 0x7f...>" where that is longer than `max_text` or the integer than 64 bytes.
/// Units: `max_text` bytes of digits.
std::string big_int_text(const BigInt& value, std::uint64_t max_text);

} // namespace lockstep::ckpt::internal
