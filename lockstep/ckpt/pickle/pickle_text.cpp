// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Drops sign bytes that say nothing.
std::string_view minimal(std::string_view bytes) {
  while (bytes.size() > 1) {
    const unsigned char last = byte_at(bytes, bytes.size() - 1);
    const bool negative = (byte_at(bytes, bytes.size() - 2) & 0x80) != 0;
    if (last != (negative ? 0xFF : 0x00)) {
      break;
    }
    bytes.remove_suffix(1);
  }
  return bytes;
}

// number = number * 10 + digit, little-endian base 256.
void append_digit(std::string& number, unsigned digit) {
  unsigned carry = digit;
  for (char& piece : number) {
    const unsigned next = static_cast<unsigned char>(piece) * 10U + carry;
    piece = static_cast<char>(next & 0xFF);
    carry = next >> 8;
  }
  if (carry != 0) {
    number.push_back(static_cast<char>(carry));
  }
}

void negate(std::string& number) {
  unsigned carry = 1;
  for (char& piece : number) {
    const unsigned next = (~static_cast<unsigned char>(piece) & 0xFFU) + carry;
    piece = static_cast<char>(next & 0xFF);
    carry = next >> 8;
  }
}

// Reads `digits` of `base` from the front of `text`; nothing if there are
// fewer than `least`.
std::optional<std::uint32_t> take_number(
    std::string_view& text,
    std::size_t digits,
    int base,
    std::size_t least) {
  const std::string_view part = text.substr(0, digits);
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(part.data(), part.data() + part.size(), number, base);
  const auto used = static_cast<std::size_t>(end - part.data());
  if (error != std::errc{} || used < least) {
    return std::nullopt;
  }
  text.remove_prefix(used);
  return number;
}

// The character after a backslash and what it stands for.
constexpr std::array<std::pair<char, char>, 10> kEscapes{{
    {'\\', '\\'},
    {'\'', '\''},
    {'"', '"'},
    {'n', '\n'},
    {'t', '\t'},
    {'r', '\r'},
    {'a', '\a'},
    {'b', '\b'},
    {'f', '\f'},
    {'v', '\v'},
}};

bool starts_escape(char letter) {
  return letter == 'x' || (letter >= '0' && letter <= '7') ||
         std::ranges::any_of(kEscapes, [letter](const auto& row) {
           return row.first == letter;
         });
}

// One escape, `text` after the backslash; nothing if it is broken.
std::optional<char> take_escape(std::string_view& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  for (const auto& [letter, meaning] : kEscapes) {
    if (text[0] == letter) {
      text.remove_prefix(1);
      return meaning;
    }
  }
  std::optional<std::uint32_t> number;
  if (text[0] == 'x') {
    text.remove_prefix(1);
    number = take_number(text, 2, 16, 2);
  } else {
    number = take_number(text, 3, 8, 1);
  }
  if (!number) {
    return std::nullopt;
  }
  return static_cast<char>(*number & 0xFF);
}

// Digits behind \u and \U; 0 for another letter.
std::size_t code_point_digits(char letter) {
  return letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

} // namespace

Value integer_from_bytes(std::string_view bytes) {
  bytes = minimal(bytes);
  if (bytes.size() > 8) {
    return BigInt{std::string(bytes)};
  }
  const bool negative =
      !bytes.empty() && (byte_at(bytes, bytes.size() - 1) & 0x80) != 0;
  std::uint64_t number = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | byte_at(bytes, i);
  }
  return static_cast<std::int64_t>(number);
}

std::optional<Value> integer_from_decimal(std::string_view text) {
  if (text.ends_with('L')) {
    text.remove_suffix(1);
  }
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > kMaxIntegerBytes) {
    return std::nullopt;
  }
  std::string number;
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    append_digit(number, static_cast<unsigned>(c - '0'));
  }
  number.push_back('\0'); // room for the sign
  if (negative) {
    negate(number);
  }
  return integer_from_bytes(number);
}

std::optional<std::string> unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  if (!quoted) {
    return std::nullopt;
  }
  text = text.substr(1, text.size() - 2);
  std::string plain;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c != '\\') {
      plain.push_back(c);
      continue;
    }
    if (!text.empty() && !starts_escape(text.front())) {
      plain.push_back(c); // Python keeps the backslash of an unknown escape
      continue;
    }
    const auto meaning = take_escape(text);
    if (!meaning) {
      return std::nullopt;
    }
    plain.push_back(*meaning);
  }
  return plain;
}

std::optional<std::string> unescape_unicode(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    // A backslash takes the next character with it, even another backslash.
    const bool is_pair = text[0] == '\\' && text.size() > 1;
    const std::size_t digits = is_pair ? code_point_digits(text[1]) : 0;
    if (digits == 0) {
      for (const char c : text.substr(0, is_pair ? 2 : 1)) {
        append_utf8(plain, static_cast<unsigned char>(c));
      }
      text.remove_prefix(is_pair ? 2 : 1);
      continue;
    }
    text.remove_prefix(2);
    const auto code_point = take_number(text, digits, 16, digits);
    if (!code_point || *code_point > 0x10FFFF) {
      return std::nullopt;
    }
    append_utf8(plain, *code_point);
  }
  return plain;
}

std::optional<std::string> latin1_from_utf8(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char lead = byte_at(text, i);
    if (lead < 0x80) {
      bytes.push_back(text[i]);
      continue;
    }
    const bool is_pair = (lead == 0xC2 || lead == 0xC3) &&
                         i + 1 < text.size() &&
                         (byte_at(text, i + 1) & 0xC0) == 0x80;
    if (!is_pair) {
      return std::nullopt;
    }
    ++i;
    bytes.push_back(
        static_cast<char>((lead & 0x03) << 6 | (byte_at(text, i) & 0x3F)));
  }
  return bytes;
}

} // namespace lockstep::ckpt
