// SPDX-License-Identifier: BSD-3-Clause
//
// Colours for words that tell good from bad. A terminal gets them unless
// NO_COLOR is set, TERM is "dumb", CI is "true", or --color says otherwise.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::cli {

/// What a word means; each has its own colour.
enum class Tone { kGood, kBad, kDoubtful };

/// True if standard output gets colours; `mode` is auto, always or never.
/// Errors: kInvalidArgument for another mode.
Result<bool> wants_color(std::string_view mode);

/// `text`, coloured if `is_on`.
std::string paint(std::string_view text, Tone tone, bool is_on);

} // namespace lockstep::cli
