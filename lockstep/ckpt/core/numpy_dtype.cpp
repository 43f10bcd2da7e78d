// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/numpy_dtype.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

using enum DType;

// Without the byte order.
constexpr std::array<std::pair<std::string_view, DType>, 14> kNumpyTypes{{
    {"f8", kFloat64},
    {"f4", kFloat32},
    {"f2", kFloat16},
    {"i8", kInt64},
    {"i4", kInt32},
    {"i2", kInt16},
    {"i1", kInt8},
    {"u1", kUInt8},
    {"u2", kUInt16},
    {"u4", kUInt32},
    {"u8", kUInt64},
    {"b1", kBool},
    {"c16", kComplex128},
    {"c8", kComplex64},
}};

std::string_view unsigned_descr(std::size_t size) {
  switch (size) {
    case 1:
      return "|u1";
    case 2:
      return "<u2";
    case 4:
      return "<u4";
    default:
      return "<u8";
  }
}

} // namespace

std::string numpy_descr(DType dtype) {
  const auto* row = std::ranges::find(
      kNumpyTypes,
      dtype,
      &std::pair<std::string_view, DType>::second);
  const DTypeInfo& info = dtype_info(dtype);
  if (row != kNumpyTypes.end()) {
    return format("'{}{}'", info.size == 1 ? "|" : "<", row->first);
  }
  return format("[('{}', '{}')]", info.name, unsigned_descr(info.size));
}

std::optional<NumpyDType> numpy_dtype(std::string_view descr) {
  if (descr == "<V2") {
    return NumpyDType{.dtype = kBFloat16};
  }
  // Without an order, and with one that says nothing, NumPy takes the
  // machine's.
  const bool is_big = descr.starts_with('>');
  descr.remove_prefix(descr.find_first_of("<>|=") == 0 ? 1 : 0);
  const auto* row = std::ranges::find(
      kNumpyTypes,
      descr,
      &std::pair<std::string_view, DType>::first);
  if (row == kNumpyTypes.end()) {
    return std::nullopt;
  }
  return NumpyDType{
      .dtype = row->second,
      .is_big_endian = is_big && dtype_info(row->second).size != 1};
}

std::optional<NumpyDType> numpy_dtype(
    std::string_view field,
    std::string_view descr) {
  const auto dtype = dtype_by_name(field);
  const bool is_ours =
      dtype && numpy_descr(*dtype) == format("[('{}', '{}')]", field, descr);
  return is_ours ? std::optional(NumpyDType{.dtype = *dtype}) : std::nullopt;
}

// "<U3", "<M8[ms]"
bool is_plain_numpy(std::string_view descr) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters = "biufcSUVMm";
  const auto skip = [&descr](std::string_view set) {
    descr.remove_prefix(std::min(descr.find_first_not_of(set), descr.size()));
  };
  skip("<>|=");
  if (descr.empty() || kLetters.find(descr[0]) == std::string_view::npos) {
    return false;
  }
  const bool is_date = descr[0] == 'M' || descr[0] == 'm';
  descr.remove_prefix(1);
  skip(kDigits);
  if (is_date && descr.starts_with('[') && descr.ends_with(']')) {
    descr.remove_prefix(1);
    skip("0123456789/abcdefghijklmnopqrstuvwxyzDMWY");
    return descr == "]";
  }
  return descr.empty();
}

std::uint64_t plain_numpy_bytes(std::string_view descr) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::uint64_t kTextUnit = 4; // U counts characters of 32 bits
  constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::uint64_t>::max();
  const std::size_t begin =
      std::min(descr.find_first_of(kDigits), descr.size());
  const std::size_t end =
      std::min(descr.find_first_not_of(kDigits, begin), descr.size());
  const auto count =
      parse_number<std::uint64_t>(descr.substr(begin, end - begin));
  const std::uint64_t unit =
      descr.substr(0, begin).ends_with('U') ? kTextUnit : 1;
  return count && *count <= kMaxBytes / unit ? *count * unit : kMaxBytes;
}

bool is_numpy_object(std::string_view descr) {
  const std::size_t letter = descr.find_first_not_of(std::string_view("<>|="));
  return letter != std::string_view::npos && descr[letter] == 'O';
}

} // namespace lockstep::ckpt
