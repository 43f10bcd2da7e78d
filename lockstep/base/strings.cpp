// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/args.h>
#include <fmt/core.h>
#include <fmt/format.h>

namespace lockstep {
namespace {

// Python shows no sign of NaN.
template <class T>
T without_sign_of_nan(T value) {
  if constexpr (std::floating_point<T>) {
    return std::isnan(value) ? std::abs(value) : value;
  }
  return value;
}

// Python's repr: a fraction or an exponent is always visible.
std::string python_spelling(std::string text) {
  if (text.find_first_of(".en") == std::string::npos) {
    text += ".0"; // "inf" and "nan" hold an 'n'
  }
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  std::vector<std::size_t> before = row;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    std::vector<std::size_t> next(row.size(), i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      next[j + 1] = std::min({replace, next[j] + 1, row[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1); // "adma"
      }
    }
    before = std::exchange(row, std::move(next));
  }
  return row.back();
}

// As many slips of the pen are likely in a word of that length.
std::size_t likely_slips(std::string_view word) {
  constexpr std::size_t kLettersForEach = 3;
  const std::size_t dashes = word.find_first_not_of('-');
  const std::size_t letters = word.size() - std::min(dashes, word.size());
  return std::max<std::size_t>(letters / kLettersForEach, 1);
}

// U+202A to U+202E and U+2066 to U+2069 make a terminal show later text in
// another order, so that a name looks like another name.
bool is_direction(std::string_view character) {
  const std::string_view three = character.substr(0, 3);
  return (three >= "\xe2\x80\xaa" && three <= "\xe2\x80\xae") ||
         (three >= "\xe2\x81\xa6" && three <= "\xe2\x81\xa9");
}

bool is_plain_ascii(char c) {
  return c >= 0x20 && c < 0x7F;
}

// Control characters 0x00-0x1F, 0x7F and, as two bytes, 0x80-0x9F.
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  return lead < 0x20 || lead == 0x7F ||
         (lead == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0) ||
         is_direction(character);
}

} // namespace

std::string vformat(std::string_view pattern, std::span<const FormatArg> args) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  store.reserve(args.size(), 0);
  for (const FormatArg& arg : args) {
    std::visit(
        [&store](const auto& value) {
          store.push_back(without_sign_of_nan(value));
        },
        arg.value());
  }
  return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), store);
}

std::string shortest(float value) {
  return python_spelling(format("{}", value));
}

std::string shortest(double value) {
  return python_spelling(format("{}", value));
}

std::string join(
    std::span<const std::string> parts,
    std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      return parts;
    }
    begin = end + 1;
  }
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return text.empty() ? 0 : 1;
  }
  const std::size_t length = lead < 0xC2   ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) {
      return 0;
    }
  }
  const unsigned next = byte(1);
  const bool overlong =
      (lead == 0xE0 && next < 0xA0) || (lead == 0xF0 && next < 0x90);
  const bool surrogate = lead == 0xED && next >= 0xA0;
  const bool too_large = lead == 0xF4 && next >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t prefix = 0;
  while (prefix < text.size()) {
    const std::size_t length = utf8_length(text.substr(prefix));
    if (length == 0) {
      break;
    }
    prefix += length;
  }
  return prefix;
}

bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  const auto tail = [&](unsigned shift) {
    text.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    text.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    text.push_back(static_cast<char>(0xC0 | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    text.push_back(static_cast<char>(0xE0 | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    text.push_back(static_cast<char>(0xF0 | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string escape(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes && std::ranges::all_of(text, is_plain_ascii)) {
    return std::string(text);
  }
  std::string safe;
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    if (length > 0 && is_control(text)) {
      length = 0;
    }
    std::string piece =
        length == 0
            ? fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]))
            : std::string(text.substr(0, length));
    if (safe.size() + piece.size() > max_bytes) {
      return safe + "...";
    }
    safe += piece;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

int display_width(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string padded(std::string text, int width) {
  const int missing = std::max(width - display_width(text), 0);
  text.append(static_cast<std::size_t>(missing), ' ');
  return text;
}

std::string with_commas(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string
counted(std::uint64_t count, std::string_view one, std::string_view many) {
  const bool adds_s = count != 1 && many.empty();
  return format(
      "{} {}{}",
      with_commas(count),
      count == 1 || adds_s ? one : many,
      adds_s ? "s" : "");
}

std::string some_names(std::span<const std::string> names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), kShown))) {
    shown.push_back(format("'{}'", escape(name)));
  }
  const std::string text = join(shown, ", ");
  return names.size() > kShown ? format(
                                     "{} and {} more",
                                     text,
                                     with_commas(names.size() - kShown))
                               : text;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

std::string human_seconds(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format(
      "{}:{:02}:{:02}",
      whole / 3600,
      whole / 60 % 60,
      whole % 60);
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

std::string nearest(
    std::string_view word,
    std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = likely_slips(word) + 1;
  for (const std::string& candidate : candidates) {
    // "cifar" is near "cifar10".
    constexpr std::size_t kTellingStart = 4;
    if (best_distance > 1 && word.size() >= kTellingStart &&
        candidate.starts_with(word)) {
      best_distance = 1;
      best = &candidate;
      continue;
    }
    if (candidate.size() >= word.size() + best_distance ||
        word.size() >= candidate.size() + best_distance) {
      continue; // its length alone says so
    }
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

void internal::pattern_takes_another_number_of_arguments() {
  std::abort(); // a compiler has seen to it that nobody comes here
}

} // namespace lockstep
