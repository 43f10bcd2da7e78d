// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/numpy_scalar.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "lockstep/ckpt/core/numpy_dtype.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

using enum DType;

// `dtype('f8', False, True)` with the state (3, '<', None, ...).
std::optional<NumpyDType> dtype_of(const Value& value) {
  const Object* const object = value.as_object();
  if (object == nullptr || object->global != "numpy.dtype" ||
      object->args == nullptr || object->state == nullptr) {
    return std::nullopt;
  }
  const Tuple* const args = object->args->as_tuple();
  const Tuple* const state = object->state->as_tuple();
  if (args == nullptr || args->items.empty() || state == nullptr ||
      state->items.size() < 2) {
    return std::nullopt;
  }
  const std::string* const code = args->items[0].as_string();
  const std::string* const order = state->items[1].as_string();
  if (code == nullptr || order == nullptr || order->size() != 1) {
    return std::nullopt;
  }
  const auto type = numpy_dtype(*order + *code);
  // "<V2" is a number in files of arrays only; a scalar has raw bytes.
  return type && type->dtype != kBFloat16 ? type : std::nullopt;
}

// The bytes of a number in this order or the other.
std::string in_file_order(std::string bytes, bool is_big_endian) {
  if (is_big_endian) {
    std::ranges::reverse(bytes);
  }
  return bytes;
}

Value integer(const std::string& bytes, bool is_signed) {
  const std::uint64_t bits =
      internal::read_number(as_byte_span(bytes), bytes.size());
  const std::size_t unused = 64 - 8 * bytes.size();
  if (is_signed) {
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }
  if (std::in_range<std::int64_t>(bits)) {
    return static_cast<std::int64_t>(bits);
  }
  return BigInt{bytes + '\0'};
}

double real(const std::string& bytes, DType dtype) {
  return read_number(as_byte_span(bytes).data(), dtype).value_or(0);
}

Value complex(const std::string& bytes, const NumpyDType& type) {
  const std::size_t half = bytes.size() / 2;
  const DType part = type.dtype == kComplex64 ? kFloat32 : kFloat64;
  const auto number = [&](std::size_t from) {
    return real(
        in_file_order(bytes.substr(from, half), type.is_big_endian),
        part);
  };
  return Complex{.real = number(0), .imag = number(half)};
}

Value number_of(const std::string& bytes, const NumpyDType& type) {
  const std::string ordered = in_file_order(bytes, type.is_big_endian);
  switch (type.dtype) {
    case kComplex64:
    case kComplex128:
      return complex(bytes, type);
    case kFloat16:
    case kFloat32:
    case kFloat64:
      return real(ordered, type.dtype);
    case kBool:
      return ordered[0] != '\0';
    default:
      return integer(ordered, dtype_info(type.dtype).name.starts_with("int"));
  }
}

} // namespace

CallResult call_numpy_scalar(const Tuple& args) {
  if (args.items.size() != 2) {
    return std::optional<Value>();
  }
  const auto type = dtype_of(args.items[0]);
  const Bytes* const bytes = args.items[1].as_bytes();
  if (!type || bytes == nullptr ||
      bytes->data.size() != dtype_info(type->dtype).size) {
    return std::optional<Value>();
  }
  return std::optional(number_of(bytes->data, *type));
}

} // namespace lockstep::ckpt
