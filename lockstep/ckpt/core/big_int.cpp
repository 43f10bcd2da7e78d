// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/big_int.h"

#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::size_t kMaxDecimalBytes = 64;

// Nine decimal digits each, the last ones first.
using Groups = std::vector<std::uint64_t>;
constexpr std::uint64_t kGroup = 1'000'000'000;

void multiply_add(Groups& groups, std::uint64_t factor, std::uint64_t carry) {
  for (std::uint64_t& group : groups) {
    carry += group * factor;
    group = carry % kGroup;
    carry /= kGroup;
  }
  if (carry != 0) {
    groups.push_back(carry);
  }
}

std::string decimal(std::string_view bytes) {
  const bool is_negative =
      !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
  const unsigned flip = is_negative ? 0xFF : 0; // -x is ~x + 1
  Groups groups;
  for (std::size_t i = bytes.size(); i-- > 0;) { // the last byte is the first
    multiply_add(groups, 256, static_cast<unsigned char>(bytes[i]) ^ flip);
  }
  multiply_add(groups, 1, is_negative ? 1 : 0);
  if (groups.empty()) {
    return "0";
  }
  std::string text = is_negative ? "-" : "";
  text += std::to_string(groups.back());
  for (std::size_t i = groups.size() - 1; i-- > 0;) {
    text += format("{:09}", groups[i]);
  }
  return text;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    text += format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

} // namespace

std::string big_int_text(const BigInt& value, std::uint64_t max_text) {
  if (value.bytes.size() <= kMaxDecimalBytes) {
    std::string text = decimal(value.bytes);
    if (text.size() <= max_text) {
      return text;
    }
  }
  return format(
      "<int of {} bytes, 0x{}>",
      value.bytes.size(),
      escape(hex(value.bytes), max_text));
}

} // namespace lockstep::ckpt::internal
