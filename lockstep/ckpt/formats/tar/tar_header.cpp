// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/tar/tar_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

constexpr TarField kSize{124, 12};
constexpr TarField kChecksum{148, 8};
constexpr TarField kMagicField{257, 5};
// Mode, user, group, size, time, checksum, and the numbers of a device.
constexpr std::array kNumbers{
    TarField{100, 8},
    TarField{108, 8},
    TarField{116, 8},
    kSize,
    TarField{136, 12},
    kChecksum,
    TarField{329, 8},
    TarField{337, 8}};

// Octal digits between blanks; nothing for anything else.
std::optional<std::uint64_t> octal(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t end = text.find_last_not_of(' ') + 1;
  std::uint64_t value = 0;
  const auto [stop, error] =
      std::from_chars(text.data() + begin, text.data() + end, value, 8);
  return error == std::errc{} && stop == text.data() + end
             ? std::optional(value)
             : std::nullopt;
}

// As `int(text, 8)` of Python reads it; nothing where it raises.
std::optional<std::int64_t> python_octal(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  const std::size_t begin =
      std::min(text.find_first_not_of(kBlanks), text.size());
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  if (text.empty()) {
    return 0;
  }
  const bool is_negative = text.starts_with('-');
  text.remove_prefix(is_negative || text.starts_with('+') ? 1 : 0);
  bool may_separate = false;
  if (text.starts_with("0o") || text.starts_with("0O")) {
    text.remove_prefix(2);
    may_separate = true;
  }
  std::int64_t value = 0;
  bool is_digit = false;
  for (const char c : text) {
    is_digit = c >= '0' && c <= '7';
    if (!is_digit && (c != '_' || !may_separate)) {
      return std::nullopt;
    }
    may_separate = is_digit;
    value = is_digit ? value * 8 + (c - '0') : value;
  }
  return is_digit ? std::optional(is_negative ? -value : value) : std::nullopt;
}

// Digits, or a mark and a number of two's complement, of which the low 64 bits
// are given; nothing where Python raises.
std::optional<std::int64_t> python_number(ByteSpan header, TarField field) {
  constexpr std::byte kPositive{0x80};
  constexpr std::byte kNegative{0xFF};
  const ByteSpan bytes = header.subspan(field.begin, field.length);
  if (bytes[0] != kPositive && bytes[0] != kNegative) {
    return python_octal(tar_text(header, field));
  }
  std::uint64_t value = bytes[0] == kNegative ? ~std::uint64_t{0} : 0;
  for (const std::byte byte : bytes.subspan(1)) {
    value = value << 8 | static_cast<std::uint64_t>(byte);
  }
  return static_cast<std::int64_t>(value);
}

// Of bytes of type `Byte`, with blanks for the checksum itself.
template <class Byte>
std::int64_t checksum(ByteSpan header) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool is_own =
        i >= kChecksum.begin && i < kChecksum.begin + kChecksum.length;
    sum += is_own ? ' ' : static_cast<Byte>(header[i]);
  }
  return sum;
}

} // namespace

bool is_tar(ByteSpan head) {
  return head.size() >= kMagicField.begin + kMagicField.length &&
         tar_text(head, kMagicField) == "ustar";
}

bool starts_like_tar(ByteSpan head) {
  if (head.size() < kTarBlock) {
    return false;
  }
  const ByteSpan header = head.first(kTarBlock);
  const auto sum = python_number(header, kChecksum);
  return (sum == checksum<unsigned char>(header) ||
          sum == checksum<signed char>(header)) &&
         std::ranges::all_of(kNumbers, [header](TarField field) {
           return python_number(header, field).has_value();
         });
}

std::string_view tar_text(ByteSpan header, TarField field) {
  const std::string_view text =
      as_text(header.subspan(field.begin, field.length));
  return text.substr(0, text.find('\0'));
}

// Large sizes: the first bit set, then a big-endian number.
std::optional<std::uint64_t> tar_size(ByteSpan header) {
  const ByteSpan bytes = header.subspan(kSize.begin, kSize.length);
  if (bytes[0] != std::byte{0x80}) {
    return octal(tar_text(header, kSize));
  }
  std::uint64_t value = 0;
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    if (value >> 56 != 0) {
      return std::nullopt;
    }
    value = value << 8 | static_cast<std::uint64_t>(bytes[i]);
  }
  return value;
}

bool has_right_checksum(ByteSpan header) {
  const auto sum = octal(tar_text(header, kChecksum));
  return sum && std::cmp_equal(*sum, checksum<unsigned char>(header));
}

} // namespace lockstep::ckpt
