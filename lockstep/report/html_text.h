// SPDX-License-Identifier: BSD-3-Clause
//
// Text of any kind inside of an HTML or SVG file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::report {

/// `text` in a form that a page shows as it is: what HTML and XML mean
/// otherwise becomes an entity, and control characters, also those that change
/// the direction of text, become visible. Safe in attributes with quotes of
/// either kind. Cut after `max_bytes`, with "...".
std::string html_text(std::string_view text, std::size_t max_bytes = 4096);

/// `bytes` as "data:TYPE;base64,..." for a page that has all in itself.
std::string data_uri(std::string_view type, std::string_view bytes);

} // namespace lockstep::report
