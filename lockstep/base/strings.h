// SPDX-License-Identifier: BSD-3-Clause
//
// Text: formatting with `{}` (fmt's grammar, without its headers), shortest
// decimals, escaping of foreign text, human sizes and times, nearest words.
//   format("{} of {} ({:.1f} %)", done, total, 100.0 * done / total)
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

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

/// `pattern` in fmt's grammar. Errors: throws std::runtime_error on a bad one.
std::string vformat(std::string_view pattern, std::span<const FormatArg> args);

/// Formats bool, integers, floats and anything that turns into a string_view.
template <class... Args>
std::string format(std::string_view pattern, const Args&... args) {
  const std::array<FormatArg, sizeof...(Args)> list{FormatArg(args)...};
  return vformat(pattern, list);
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

/// Foreign text made safe for a terminal: control and non-UTF-8 bytes become
/// `\xNN`, and what is longer than `max_bytes` is cut with "...".
std::string escape(std::string_view text, std::size_t max_bytes = 80);

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

/// The word in `candidates` nearest to `word`, or "" if none is near.
std::string nearest(
    std::string_view word,
    std::span<const std::string> candidates);

} // namespace lockstep
