// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/value_equal.h"

#include <algorithm>
#include <cmath>

namespace lockstep::ckpt::internal {
namespace {

// A number that is exactly this integer.
bool is_integer(double number, std::int64_t integer) {
  constexpr double kEnd = 0x1p63;
  return number >= -kEnd && number < kEnd &&
         static_cast<double>(static_cast<std::int64_t>(number)) == number &&
         static_cast<std::int64_t>(number) == integer;
}

// An int or a bool, which counts as one.
std::optional<std::int64_t> integer_of(const Value& key) {
  if (const bool* flag = key.as_bool()) {
    return *flag ? 1 : 0;
  }
  const std::int64_t* integer = key.as_int();
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

// Numbers as Python compares them; nothing if one is no number of 64 bits.
std::optional<bool> equal_numbers(const Value& a, const Value& b) {
  const auto x = integer_of(a);
  const auto y = integer_of(b);
  if (x && y) {
    return *x == *y;
  }
  const bool has_floats = (x || a.type() == ValueType::kFloat) &&
                          (y || b.type() == ValueType::kFloat);
  if (!has_floats) {
    return std::nullopt;
  }
  return x   ? is_integer(*b.as_float(), *x)
         : y ? is_integer(*a.as_float(), *y)
             : *a.as_float() == *b.as_float();
}

// Without its sign, little-endian.
std::string magnitude(const BigInt& value, bool is_negative) {
  std::string bytes = value.bytes;
  unsigned carry = is_negative ? 1 : 0; // -x is ~x + 1
  for (char& byte : bytes) {
    const unsigned flip = is_negative ? 0xFF : 0;
    const unsigned sum = (static_cast<unsigned char>(byte) ^ flip) + carry;
    byte = static_cast<char>(sum & 0xFF);
    carry = sum >> 8;
  }
  return bytes;
}

} // namespace

bool equal_keys(const Value& a, const Value& b) {
  if (const auto are_equal = equal_numbers(a, b)) {
    return *are_equal;
  }
  if (a.type() != b.type()) {
    return false;
  }
  switch (a.type()) {
    case ValueType::kNone:
      return true;
    case ValueType::kString:
      return *a.as_string() == *b.as_string();
    case ValueType::kBytes:
      return a.as_bytes()->data == b.as_bytes()->data;
    case ValueType::kBigInt:
      return a.as_big_int()->bytes == b.as_big_int()->bytes;
    case ValueType::kTuple:
      return std::ranges::equal(
          a.as_tuple()->items,
          b.as_tuple()->items,
          equal_keys);
    default:
      return a.address() != nullptr && a.address() == b.address();
  }
}

std::optional<double> double_of(const BigInt& value) {
  const bool is_negative =
      !value.bytes.empty() &&
      (static_cast<unsigned char>(value.bytes.back()) & 0x80U) != 0;
  std::string bytes = magnitude(value, is_negative);
  while (!bytes.empty() && bytes.back() == '\0') {
    bytes.pop_back();
  }
  // The first 64 bits; whether others follow is their last bit, so that the
  // one rounding there is goes the right way.
  std::uint64_t front = 0;
  int shift = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (front >> 56 == 0) {
      front = front << 8 | byte;
    } else {
      front |= byte == 0 ? 0 : 1;
      shift += 8;
    }
  }
  const double number = std::ldexp(static_cast<double>(front), shift);
  if (!std::isfinite(number)) {
    return std::nullopt;
  }
  return is_negative ? -number : number;
}

} // namespace lockstep::ckpt::internal
