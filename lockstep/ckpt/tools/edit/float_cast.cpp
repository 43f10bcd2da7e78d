// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/edit/float_cast.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::ckpt::internal {
namespace {

struct Half {
  std::uint16_t bits = 0;
};
struct BFloat {
  std::uint16_t bits = 0;
};

// Widening is exact.
float widen(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1F;
  const std::uint32_t fraction = value.bits & 0x3FF;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  }
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
float widen(BFloat value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
float widen(float value) {
  return value;
}
double widen(double value) {
  return value;
}

void narrow(float value, BFloat& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    out.bits = 0x7FC0; // as c10::BFloat16
    return;
  }
  out.bits =
      static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void narrow(float value, Half& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(value)) {
    out.bits = static_cast<std::uint16_t>(sign | 0x7E00);
    return;
  }
  const float size = std::fabs(value);
  constexpr float kTooLarge = 65520; // halfway between the largest and 2^16
  if (size >= kTooLarge) {
    out.bits = static_cast<std::uint16_t>(sign | 0x7C00);
    return;
  }
  constexpr float kSmallestNormal = 0x1p-14F;
  if (size < kSmallestNormal) {
    // nearbyint rounds to even; 1024 becomes the smallest normal number.
    const float steps = std::nearbyint(std::ldexp(size, 24));
    out.bits =
        static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(steps));
    return;
  }
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  const std::uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  out.bits = sign | static_cast<std::uint16_t>((rounded >> 13) - (112U << 10));
}
void narrow(float value, float& out) {
  out = value;
}
void narrow(float value, double& out) {
  out = value;
}
// From double by way of float: what PyTorch's casts do.
void narrow(double value, Half& out) {
  narrow(static_cast<float>(value), out);
}
void narrow(double value, BFloat& out) {
  narrow(static_cast<float>(value), out);
}
void narrow(double value, float& out) {
  out = static_cast<float>(value);
}
void narrow(double value, double& out) {
  out = value;
}

bool is_infinite(Half value) {
  return (value.bits & 0x7FFF) == 0x7C00;
}
bool is_infinite(BFloat value) {
  return (value.bits & 0x7FFF) == 0x7F80;
}
bool is_infinite(float value) {
  return std::isinf(value);
}
bool is_infinite(double value) {
  return std::isinf(value);
}

template <class From, class To>
bool cast(ByteSpan in, std::span<std::byte> out) {
  const std::size_t count = in.size() / sizeof(From);
  bool overflows = false;
  for (std::size_t i = 0; i < count; ++i) {
    From from{};
    To to{};
    std::memcpy(&from, in.data() + i * sizeof from, sizeof from);
    narrow(widen(from), to);
    overflows |= is_infinite(to) && !is_infinite(from);
    std::memcpy(out.data() + i * sizeof to, &to, sizeof to);
  }
  return overflows;
}

template <class From>
bool cast_from(ByteSpan in, std::span<std::byte> out, DType to) {
  switch (to) {
    case DType::kFloat64:
      return cast<From, double>(in, out);
    case DType::kFloat32:
      return cast<From, float>(in, out);
    case DType::kFloat16:
      return cast<From, Half>(in, out);
    default:
      return cast<From, BFloat>(in, out);
  }
}

} // namespace

DType part_dtype(DType dtype) {
  switch (dtype) {
    case DType::kComplex128:
      return DType::kFloat64;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex32:
      return DType::kFloat16;
    default:
      return dtype;
  }
}

bool is_castable(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

bool cast_floats(ByteSpan in, DType from, std::span<std::byte> out, DType to) {
  LOCKSTEP_CHECK(is_castable(from) && is_castable(to));
  switch (from) {
    case DType::kFloat64:
      return cast_from<double>(in, out, to);
    case DType::kFloat32:
      return cast_from<float>(in, out, to);
    case DType::kFloat16:
      return cast_from<Half>(in, out, to);
    default:
      return cast_from<BFloat>(in, out, to);
  }
}

} // namespace lockstep::ckpt::internal
