// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/convert.h"

#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {
namespace {

// The number in a tensor of one element; other values as they are.
Value number_of(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  if (tensor == nullptr || tensor->numel() != 1 || !has_bytes(*tensor) ||
      tensor->quantizer != nullptr) {
    return value;
  }
  const ByteSpan bytes = TensorBlocks(*tensor).next().value();
  const std::string text = element_text(bytes.data(), tensor->dtype);
  if (text == "True" || text == "False") {
    return text == "True";
  }
  // int64 needs more than the bits of a double.
  if (const auto integer = parse_number<std::int64_t>(text)) {
    return *integer;
  }
  if (const auto integer = parse_number<std::uint64_t>(text)) {
    return *integer;
  }
  if (const auto number = read_number(bytes.data(), tensor->dtype)) {
    return *number;
  }
  return value;
}

[[noreturn]] void raise_range(
    const Entry& entry,
    const std::string& low,
    const std::string& high) {
  raise_type(entry, "an int from " + low + " to " + high);
}

} // namespace

bool bool_in(const Entry& entry) {
  const Value value = number_of(entry);
  if (value.as_bool() == nullptr) {
    raise_type(entry, "a bool");
  }
  return *value.as_bool();
}

std::int64_t
integer_in(const Entry& entry, std::int64_t low, std::int64_t high) {
  const Value value = number_of(entry);
  const std::int64_t* integer = value.as_int();
  if (integer == nullptr && value.as_big_int() == nullptr) {
    raise_type(entry, "an int");
  }
  if (integer == nullptr || *integer < low || *integer > high) {
    raise_range(entry, std::to_string(low), std::to_string(high));
  }
  return *integer;
}

std::uint64_t unsigned_in(const Entry& entry, std::uint64_t high) {
  const Value value = number_of(entry);
  const std::int64_t* integer = value.as_int();
  const BigInt* big = value.as_big_int();
  if (integer == nullptr && big == nullptr) {
    raise_type(entry, "an int");
  }
  std::optional<std::uint64_t> number;
  if (integer != nullptr && *integer >= 0) {
    number = static_cast<std::uint64_t>(*integer);
  }
  // From 2^63 up: eight bytes and a ninth for the sign.
  if (big != nullptr && big->bytes.size() == 9 && big->bytes.back() == '\0') {
    std::uint64_t bits = 0;
    for (std::size_t i = 8; i > 0; --i) {
      bits = bits << 8U | static_cast<unsigned char>(big->bytes[i - 1]);
    }
    number = bits;
  }
  if (!number || *number > high) {
    raise_range(entry, "0", std::to_string(high));
  }
  return *number;
}

double float_in(const Entry& entry) {
  const Value value = number_of(entry);
  const auto number = value.as_float();
  if (!number) {
    raise_type(entry, "a float");
  }
  return *number;
}

std::complex<double> complex_in(const Entry& entry) {
  if (const Complex* complex = entry.as_complex()) {
    return {complex->real, complex->imag};
  }
  const Value value = number_of(entry);
  const auto number = value.as_float();
  if (!number) {
    raise_type(entry, "a complex number");
  }
  return *number;
}

} // namespace lockstep::ckpt::internal
