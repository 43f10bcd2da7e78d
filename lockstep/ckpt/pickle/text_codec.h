// SPDX-License-Identifier: BSD-3-Clause
//
// Text of pickles: what counts as UTF-8, and bytes spelled as text.
//   is_utf8("abc");  latin1_to_utf8("\xff");
#pragma once

#include <string>
#include <string_view>

namespace lockstep::ckpt::internal {

/// True for UTF-8. Encoded surrogates pass, as in Python's pickles.
bool is_utf8(std::string_view text);

/// One character per byte, as Python's latin1 codec decodes it.
std::string latin1_to_utf8(std::string_view bytes);

} // namespace lockstep::ckpt::internal
