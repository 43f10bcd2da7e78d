// SPDX-License-Identifier: BSD-3-Clause
//
// All formats, one row each. `load` and `save` go through the table, and so
// does everybody else who does something that depends on a format.
//   for (const Format& format : formats()) { ... }
#pragma once

#include <span>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"

namespace lockstep::ckpt {

/// All rows.
std::span<const Format> formats();

/// The first row that claims the input; null if none does. Errors: kIo.
Result<const Format*> find_format(const ReadInput& input);

/// The row of a file that was read; an empty one for any other name.
const Format& format_of(const Checkpoint& file);
const Format& format_of(std::string_view name);

/// The writers of the rows, that of `SaveOptions` first.
std::span<const FormatWriter> format_writers();

/// The row whose writer has the name; null if none has.
const Format* format_to_write(std::string_view writer);

/// The ending of `path`, if it is one of the format; else empty.
std::string_view ending_of(const Format& format, std::string_view path);

} // namespace lockstep::ckpt
