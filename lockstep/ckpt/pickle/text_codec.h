// SPDX-License-Identifier: BSD-3-Clause
//
// Text of pickles: what counts as text, and bytes spelled as text.
//   is_utf8_with_surrogates("abc");  latin1_to_utf8("\xff");
#pragma once

#include <string>
#include <string_view>

namespace lockstep::ckpt::internal {

/// Python's "surrogatepass": UTF-8, and encoded surrogates beside it. Of other
/// formats only UTF-8 is text (`lockstep::is_utf8`).
bool is_utf8_with_surrogates(std::string_view text);

/// One character per byte, as Python's latin1 codec decodes it.
std::string latin1_to_utf8(std::string_view bytes);

} // namespace lockstep::ckpt::internal
