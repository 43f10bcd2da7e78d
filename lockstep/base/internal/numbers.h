// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers in text, whatever the locale.
//   const auto port = parse_number<int>("29500");   // nothing for "29500x"
#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace lockstep {

/// The number that all of `text` is, as std::from_chars reads it: no blanks in
/// front, no "+"; nothing if it is another text or does not fit.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number)
                                             : std::nullopt;
}

/// From `low` to `high`, both included; nothing for what is outside.
template <std::integral Number>
std::optional<Number> parse_number(
    std::string_view text,
    Number low,
    Number high = std::numeric_limits<Number>::max()) {
  const auto number = parse_number<Number>(text);
  return number && *number >= low && *number <= high ? number : std::nullopt;
}

} // namespace lockstep
