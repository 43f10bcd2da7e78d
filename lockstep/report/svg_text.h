// SPDX-License-Identifier: BSD-3-Clause
//
// Text of any kind inside of an SVG file.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::report {

/// `text` with its control characters made visible and what XML means otherwise
/// as entities; cut after 80 bytes.
std::string svg_text(std::string_view text);

} // namespace lockstep::report
