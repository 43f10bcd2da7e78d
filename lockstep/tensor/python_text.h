// SPDX-License-Identifier: BSD-3-Clause
//
// Small pieces of text as Python prints them, for messages and reports.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <c10/util/ArrayRef.h>

namespace lockstep {

/// `repr(str)`: 'a', or "it's" where the text holds a single quote.
std::string python_repr(std::string_view text);

/// `repr(list of str)`: ['a', 'b'].
std::string python_repr(std::span<const std::string> texts);

/// Sizes as PyTorch prints them: torch.Size([5, 3]).
std::string size_text(c10::IntArrayRef sizes);

/// A tuple of integers: (3, 3), or (3,) for one.
std::string tuple_text(c10::IntArrayRef values);

} // namespace lockstep
