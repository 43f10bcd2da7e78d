// SPDX-License-Identifier: BSD-3-Clause
//
// Text: formatting with `{}` (fmt's grammar, without its headers), shortest
// decimals, escaping of foreign text, human sizes and times, nearest words.
//   format("{} of {} ({:.1f} %)", done, total, 100.0 * done / total)
// A pattern that takes another number of arguments does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

/// One argument of `format`. Holds views: use it only within the call.
class FormatArg {
 public:
  using Variant = std::variant<
      std::int64_t,
      std::uint64_t,
      double,
      float,
      bool,
      std::string_view>;

  // Implicit on purpose: arguments convert where `format` is called.
  template <class T>
  // NOLINTNEXTLINE(google-explicit-constructor)
  FormatArg(const T& value) : value_(convert(value)) {}

  [[nodiscard]] const Variant& value() const noexcept {
    return value_;
  }

 private:
  template <class T>
  static Variant convert(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return Variant(std::in_place_type<bool>, value);
    } else if constexpr (std::signed_integral<T>) {
      return Variant(std::in_place_type<std::int64_t>, value);
    } else if constexpr (std::unsigned_integral<T>) {
      return Variant(std::in_place_type<std::uint64_t>, value);
    } else if constexpr (std::is_same_v<T, float>) {
      return Variant(std::in_place_type<float>, value);
    } else if constexpr (std::floating_point<T>) {
      return Variant(std::in_place_type<double>, static_cast<double>(value));
    } else {
      return Variant(std::in_place_type<std::string_view>, value);
    }
  }
  Variant value_;
};

namespace internal {

/// How many arguments a pattern in fmt's grammar takes: as many as it has `{}`,
/// the inner one of `{:>{}}` included, or one more than the highest number in
/// `{0}`. Nothing for a text that is no such pattern.
constexpr std::optional<std::size_t> argument_count(std::string_view pattern) {
  std::size_t plain = 0;
  std::size_t numbered = 0;
  std::size_t depth = 0;
  while (!pattern.empty()) {
    if (depth == 0 &&
        (pattern.starts_with("{{") || pattern.starts_with("}}"))) {
      pattern.remove_prefix(2);
      continue;
    }
    const char c = pattern.front();
    pattern.remove_prefix(1);
    if (c == '}' && depth-- == 0) {
      return std::nullopt;
    }
    if (c == '{') {
      ++depth;
      std::size_t end = 0; // one more than the number
      for (; !pattern.empty() && pattern[0] >= '0' && pattern[0] <= '9';
           pattern.remove_prefix(1)) {
        const auto digit = static_cast<std::size_t>(pattern[0] - '0');
        end = end == 0 ? digit + 1 : 10 * (end - 1) + digit + 1;
      }
      plain += end == 0 ? 1 : 0;
      numbered = std::max(numbered, end);
    }
  }
  const bool is_mixed = plain != 0 && numbered != 0;
  return depth != 0 || is_mixed ? std::nullopt
                                : std::optional(plain + numbered);
}

/// Not constexpr: what the compiler names where a pattern does not take the
/// arguments that it is given. Not inline, either: clang 16 checks some
/// patterns when the program runs.
[[noreturn]] void pattern_takes_another_number_of_arguments();

} // namespace internal

/// A literal pattern in fmt's grammar; one that does not take `count` arguments
/// does not compile.
template <std::size_t count>
class FormatPattern {
 public:
  // Implicit on purpose: literals convert where `format` is called.
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval FormatPattern(const Text& text) : text_(text) {
    if (internal::argument_count(text_) != count) {
      internal::pattern_takes_another_number_of_arguments();
    }
  }

  [[nodiscard]] constexpr std::string_view text() const noexcept {
    return text_;
  }

 private:
  std::string_view text_;
};

/// `format` with a list of arguments. Errors: throws std::runtime_error where
/// the pattern does not fit them.
std::string vformat(std::string_view pattern, std::span<const FormatArg> args);

/// Formats bool, integers, floats and anything that turns into a string_view.
template <class... Args>
std::string format(
    FormatPattern<sizeof...(Args)> pattern,
    const Args&... args) {
  const std::array<FormatArg, sizeof...(Args)> list{FormatArg(args)...};
  return vformat(pattern.text(), list);
}

/// The shortest decimal that reads back as the same number: "0.1", "1e-05".
/// Spelled as Python's repr: "1.0", "inf", "nan".
std::string shortest(float value);
std::string shortest(double value);

/// Joins `parts` with `separator`.
std::string join(
    std::span<const std::string> parts,
    std::string_view separator);

/// Splits at each `separator`; an empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// Units: bytes of the character at the front of `text`; 0 if the text is empty
/// or does not start with well-formed UTF-8.
std::size_t utf8_length(std::string_view text);

/// Units: bytes in front of the first that is not well-formed UTF-8.
std::size_t utf8_prefix(std::string_view text);
bool is_utf8(std::string_view text);

/// Appends a code point as UTF-8 (surrogates as three bytes).
void append_utf8(std::string& text, std::uint32_t code_point);

/// With small letters for the capital ones of ASCII.
std::string lower_case(std::string_view text);

/// Foreign text made safe for a terminal: control and non-UTF-8 bytes become
/// `\xNN`, and what is longer than `max_bytes` is cut with "...".
std::string escape(std::string_view text, std::size_t max_bytes = 80);

/// Units: columns that `text` (UTF-8 without control characters) takes, at one
/// column for each character.
int display_width(std::string_view text);

/// `text` and spaces up to `width` columns.
std::string padded(std::string text, int width);

/// Thousands separated by commas: 11,175,370.
std::string with_commas(std::uint64_t value);

/// A count for people, with its noun: "1 tensor", "11,175 tensors". `many` is
/// for nouns that need more than an s: "entries".
std::string
counted(std::uint64_t count, std::string_view one, std::string_view many = {});

/// The first five names, escaped and quoted, and how many more there are:
/// "'a', 'b', 'c', 'd', 'e' and 7 more".
std::string some_names(std::span<const std::string> names);

/// Bytes for people: "44.7 MiB".
std::string human_bytes(std::uint64_t bytes);

/// Seconds for people: "0:01:04".
std::string human_seconds(double seconds);

/// The word in `candidates` nearest to `word`: what it is the start of, or what
/// it becomes by few letters that are wrong, missing, too much or exchanged,
/// one for each three that it has; "" if none is near.
std::string nearest(
    std::string_view word,
    std::span<const std::string> candidates);

} // namespace lockstep
#pragma GCC visibility pop
