// SPDX-License-Identifier: BSD-3-Clause
//
// The text spellings of values inside a pickle: quoted strings, escapes and
// decimal numbers of protocol 0, integers as two's complement bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// An integer from little-endian two's complement of any length: int64 if it
/// fits, else `BigInt` of minimal length.
Value integer_from_bytes(std::string_view bytes);

/// An integer from a decimal ("-12", "12L"); nothing if it is not one or longer
/// than `kMaxIntegerBytes` digits.
std::optional<Value> integer_from_decimal(std::string_view text);

/// Undoes Python's `repr` of a byte string ('it\'s', "\x00"); nothing if the
/// quotes or escapes are broken.
std::optional<std::string> unquote(std::string_view text);

/// Undoes `raw-unicode-escape`: UTF-8 of the text; nothing if broken.
std::optional<std::string> unescape_unicode(std::string_view text);

/// Bytes whose code points `text` (UTF-8) holds; nothing if one is over 255.
std::optional<std::string> latin1_from_utf8(std::string_view text);

} // namespace lockstep::ckpt
