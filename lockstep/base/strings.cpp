// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/strings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/args.h>
#include <fmt/core.h>
#include <fmt/format.h>

namespace lockstep {
namespace {

// Python's repr: a fraction or an exponent is always visible.
std::string python_spelling(std::string text) {
  if (text.find_first_of(".en") == std::string::npos) {
    text += ".0"; // "inf" and "nan" hold an 'n'
  }
  return text;
}

// Length of the UTF-8 sequence at the front of `text`, 0 if it is broken.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80         ? 1
                             : (lead >> 5) == 6  ? 2
                             : (lead >> 4) == 14 ? 3
                             : (lead >> 3) == 30 ? 4
                                                 : 0;
  if (length == 0 || length > text.size() || lead == 0xC0 || lead == 0xC1) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) {
      return 0;
    }
  }
  const bool c1_control = lead == 0xC2 && byte(1) < 0xA0;
  return c1_control ? 0 : length;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

} // namespace

std::string vformat(std::string_view pattern, std::span<const FormatArg> args) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  store.reserve(args.size(), 0);
  for (const FormatArg& arg : args) {
    std::visit(
        [&store](const auto& value) { store.push_back(value); },
        arg.value());
  }
  return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), store);
}

std::string shortest(float value) {
  return python_spelling(fmt::format("{}", value));
}

std::string shortest(double value) {
  return python_spelling(fmt::format("{}", value));
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

std::string escape(std::string_view text, std::size_t max_bytes) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    std::string piece = length == 0 || lead < 0x20 || lead == 0x7F
                            ? fmt::format("\\x{:02x}", lead)
                            : std::string(text.substr(0, length));
    if (safe.size() + piece.size() > max_bytes) {
      return safe + "...";
    }
    safe += piece;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

std::string with_commas(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
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

std::string nearest(
    std::string_view word,
    std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : *best;
}

} // namespace lockstep
