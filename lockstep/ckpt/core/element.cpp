// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

template <class T>
T read_as(const std::byte* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T>
std::optional<double> number_as(const std::byte* bytes) {
  return static_cast<double>(read_as<T>(bytes));
}

// A small float: sign, then `exponent` and `mantissa` bits.
struct SmallFloat {
  int exponent = 0;
  int mantissa = 0;
  int bias = 0;
  // What an exponent of all ones means. In the "fnuz" types it is a number, and
  // the bits of minus zero are the only NaN.
  enum class Top { kInfNan, kNanAtAllOnes, kNanAtMinusZero } top = Top::kInfNan;
};

double decode(std::uint32_t bits, const SmallFloat& form) {
  const std::uint32_t mantissa_mask = (1U << form.mantissa) - 1;
  const std::uint32_t exponent_mask = (1U << form.exponent) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = bits >> form.mantissa & exponent_mask;
  const bool negative = (bits >> (form.mantissa + form.exponent) & 1) != 0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  if (exponent == exponent_mask && form.top == SmallFloat::Top::kInfNan) {
    value = mantissa != 0 ? nan : std::numeric_limits<double>::infinity();
  } else if (
      (exponent == exponent_mask && mantissa == mantissa_mask &&
       form.top == SmallFloat::Top::kNanAtAllOnes) ||
      (negative && exponent == 0 && mantissa == 0 &&
       form.top == SmallFloat::Top::kNanAtMinusZero)) {
    value = nan;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - form.bias - form.mantissa);
  } else {
    value = std::ldexp(
        mantissa + (1U << form.mantissa),
        static_cast<int>(exponent) - form.bias - form.mantissa);
  }
  return negative ? -value : value;
}

constexpr SmallFloat kHalf{5, 10, 15};
constexpr SmallFloat kBFloat{8, 7, 127};
constexpr SmallFloat kE5M2{5, 2, 15};
constexpr SmallFloat kE4M3fn{4, 3, 7, SmallFloat::Top::kNanAtAllOnes};
constexpr SmallFloat kE5M2fnuz{5, 2, 16, SmallFloat::Top::kNanAtMinusZero};
constexpr SmallFloat kE4M3fnuz{4, 3, 8, SmallFloat::Top::kNanAtMinusZero};

template <class Bits, SmallFloat kForm>
std::optional<double> small_float(const std::byte* bytes) {
  return decode(read_as<Bits>(bytes), kForm);
}

double half_at(const std::byte* bytes) {
  return decode(read_as<std::uint16_t>(bytes), kHalf);
}

std::optional<double> e8m0fnu(const std::byte* bytes) {
  const auto bits = read_as<std::uint8_t>(bytes);
  return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                      : std::ldexp(1.0, bits - 127);
}

std::optional<double> no_number(const std::byte* /*bytes*/) {
  return std::nullopt;
}

using Reader = std::optional<double> (*)(const std::byte*);

// In the order of `DType`.
constexpr auto kElementReaders = std::to_array<Reader>({
    number_as<double>,
    number_as<float>,
    small_float<std::uint16_t, kHalf>,
    small_float<std::uint16_t, kBFloat>,
    number_as<std::int64_t>,
    number_as<std::int32_t>,
    number_as<std::int16_t>,
    number_as<std::int8_t>,
    number_as<std::uint8_t>,
    number_as<std::uint8_t>,
    no_number,
    no_number,
    number_as<std::int8_t>,
    number_as<std::uint8_t>,
    number_as<std::int32_t>,
    no_number,
    no_number,
    number_as<std::uint16_t>,
    number_as<std::uint32_t>,
    number_as<std::uint64_t>,
    small_float<std::uint8_t, kE5M2>,
    small_float<std::uint8_t, kE4M3fn>,
    small_float<std::uint8_t, kE5M2fnuz>,
    small_float<std::uint8_t, kE4M3fnuz>,
    e8m0fnu,
    no_number,
    no_number,
    no_number,
    no_number,
    no_number,
    no_number,
    no_number,
});
static_assert(
    kElementReaders.size() == static_cast<std::size_t>(DType::kBits4x2) + 1);

using ComplexNumber = std::complex<double>;

std::optional<ComplexNumber> read_complex(const std::byte* bytes, DType dtype) {
  switch (dtype) {
    case DType::kComplex128:
      return ComplexNumber(read_as<double>(bytes), read_as<double>(bytes + 8));
    case DType::kComplex64:
      return ComplexNumber(read_as<float>(bytes), read_as<float>(bytes + 4));
    case DType::kComplex32:
      return ComplexNumber(half_at(bytes), half_at(bytes + 2));
    default:
      return std::nullopt;
  }
}

// Adds up what the elements say.
class Collector {
 public:
  Collector(DType dtype, std::uint64_t head_count)
      : dtype_(dtype), head_count_(head_count) {}

  void add(const std::byte* bytes) {
    ++stats_.elements;
    if (stats_.head.size() < head_count_) {
      stats_.head.push_back(element_text(bytes, dtype_));
    }
    const Finiteness finiteness = finiteness_of(bytes, dtype_);
    stats_.nan_count += finiteness == Finiteness::kNan ? 1 : 0;
    stats_.inf_count += finiteness == Finiteness::kInf ? 1 : 0;
    const auto number = read_number(bytes, dtype_);
    if (number && finiteness == Finiteness::kFinite) {
      stats_.min = std::min(stats_.min.value_or(*number), *number);
      stats_.max = std::max(stats_.max.value_or(*number), *number);
      sum_ += *number;
      ++finite_;
    }
  }

  TensorStats finish() {
    if (finite_ != 0) {
      stats_.mean = sum_ / static_cast<double>(finite_);
    }
    return std::move(stats_);
  }

 private:
  DType dtype_;
  std::uint64_t head_count_;
  TensorStats stats_;
  double sum_ = 0;
  std::uint64_t finite_ = 0;
};

// Several elements share a byte: the bytes are what can be shown, row after row
// from the view's offset, which counts bytes here as PyTorch reckons.
Result<TensorStats> packed_stats(
    const Tensor& tensor,
    std::uint64_t head_count) {
  TensorStats stats{.elements = static_cast<std::uint64_t>(tensor.numel())};
  if (tensor.storage->source == nullptr || stats.elements == 0) {
    return stats;
  }
  LOCKSTEP_ASSIGN(const ByteSpan bytes, internal::row_bytes(tensor));
  for (const std::byte& byte : bytes) {
    if (stats.head.size() == head_count) {
      break;
    }
    stats.head.push_back(element_text(&byte, tensor.dtype));
  }
  return stats;
}

// "2", where a number by itself is "2.0".
std::string part_text(double part) {
  std::string text = shortest(part);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  return text;
}

} // namespace

std::string complex_text(double real, double imaginary) {
  std::string tail = part_text(imaginary) + "j";
  if (real == 0 && !std::signbit(real)) {
    return tail;
  }
  const bool has_minus = tail.starts_with('-');
  return format("({}{}{})", part_text(real), has_minus ? "" : "+", tail);
}

std::optional<double> read_number(const std::byte* bytes, DType dtype) {
  return kElementReaders.at(static_cast<std::size_t>(dtype))(bytes);
}

Finiteness finiteness_of(const std::byte* bytes, DType dtype) {
  const auto complex = read_complex(bytes, dtype);
  const double first =
      complex ? complex->real() : read_number(bytes, dtype).value_or(0);
  const double second = complex ? complex->imag() : 0;
  return std::isnan(first) || std::isnan(second)   ? Finiteness::kNan
         : std::isinf(first) || std::isinf(second) ? Finiteness::kInf
                                                   : Finiteness::kFinite;
}

std::string element_text(const std::byte* bytes, DType dtype) {
  const auto number = read_number(bytes, dtype);
  switch (dtype) {
    case DType::kBool:
      return read_as<std::uint8_t>(bytes) != 0 ? "True" : "False";
    case DType::kInt64:
      return std::to_string(read_as<std::int64_t>(bytes));
    case DType::kUInt64:
      return std::to_string(read_as<std::uint64_t>(bytes));
    case DType::kFloat64:
      return shortest(read_as<double>(bytes));
    default:
      break;
  }
  if (const auto complex = read_complex(bytes, dtype)) {
    return complex_text(complex->real(), complex->imag());
  }
  if (!number) {
    return format("{:#04x}", read_as<std::uint8_t>(bytes));
  }
  const bool is_float =
      dtype_info(dtype).name.find("float") != std::string_view::npos;
  return is_float ? shortest(static_cast<float>(*number))
                  : std::to_string(static_cast<std::int64_t>(*number));
}

Result<TensorStats> tensor_stats(
    const Tensor& tensor,
    std::uint64_t head_count,
    std::uint64_t max_elements) {
  if (dtype_info(tensor.dtype).per_byte > 1) {
    return packed_stats(tensor, head_count);
  }
  const auto numel = static_cast<std::uint64_t>(tensor.numel());
  const std::size_t size = dtype_info(tensor.dtype).size;
  if (numel > max_elements && numel > tensor.storage->nbytes / size) {
    return Error{
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.show",
        .message = format(
            "tensor repeats its bytes up to {} elements; expected at most {}",
            numel,
            max_elements),
        .detail = "E_LIMIT"};
  }
  Collector collector(tensor.dtype, head_count);
  if (numel == 0) {
    return collector.finish();
  }
  // Row by row, with what a conjugate or negative view does to its bytes.
  LOCKSTEP_TRY(for_each_block(tensor, [&](ByteSpan block) -> Status {
    for (std::size_t i = 0; i + size <= block.size(); i += size) {
      collector.add(&block[i]);
    }
    return {};
  }));
  return collector.finish();
}

} // namespace lockstep::ckpt
