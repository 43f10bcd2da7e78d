// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

using enum DType;

constexpr std::array kDTypes{
    DTypeInfo{kFloat64, "float64", 8, "Double"},
    DTypeInfo{kFloat32, "float32", 4, "Float"},
    DTypeInfo{kFloat16, "float16", 2, "Half"},
    DTypeInfo{kBFloat16, "bfloat16", 2, "BFloat16"},
    DTypeInfo{kInt64, "int64", 8, "Long"},
    DTypeInfo{kInt32, "int32", 4, "Int"},
    DTypeInfo{kInt16, "int16", 2, "Short"},
    DTypeInfo{kInt8, "int8", 1, "Char"},
    DTypeInfo{kUInt8, "uint8", 1, "Byte"},
    DTypeInfo{kBool, "bool", 1, "Bool"},
    DTypeInfo{kComplex128, "complex128", 16, "ComplexDouble"},
    DTypeInfo{kComplex64, "complex64", 8, "ComplexFloat"},
    DTypeInfo{kQInt8, "qint8", 1, "QInt8"},
    DTypeInfo{kQUInt8, "quint8", 1, "QUInt8"},
    DTypeInfo{kQInt32, "qint32", 4, "QInt32"},
    DTypeInfo{kQUInt4x2, "quint4x2", 1, "QUInt4x2", 2},
    DTypeInfo{kQUInt2x4, "quint2x4", 1, "QUInt2x4", 4},
    DTypeInfo{kUInt16, "uint16", 2, ""},
    DTypeInfo{kUInt32, "uint32", 4, ""},
    DTypeInfo{kUInt64, "uint64", 8, ""},
    DTypeInfo{kFloat8E5M2, "float8_e5m2", 1, ""},
    DTypeInfo{kFloat8E4M3FN, "float8_e4m3fn", 1, ""},
    DTypeInfo{kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1, ""},
    DTypeInfo{kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1, ""},
    DTypeInfo{kFloat8E8M0FNU, "float8_e8m0fnu", 1, ""},
    DTypeInfo{kFloat4E2M1FNX2, "float4_e2m1fn_x2", 1, ""},
    DTypeInfo{kComplex32, "complex32", 4, ""},
    DTypeInfo{kBits8, "bits8", 1, ""},
    DTypeInfo{kBits16, "bits16", 2, ""},
    DTypeInfo{kBits1x8, "bits1x8", 1, ""},
    DTypeInfo{kBits2x4, "bits2x4", 1, ""},
    DTypeInfo{kBits4x2, "bits4x2", 1, ""},
};

template <class Match>
std::optional<DType> find(Match match) {
  for (const DTypeInfo& row : kDTypes) {
    if (match(row)) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

} // namespace

std::span<const DTypeInfo> dtype_table() {
  return kDTypes;
}

const DTypeInfo& dtype_info(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

std::optional<DType> dtype_by_name(std::string_view name) {
  return find([&](const DTypeInfo& row) { return row.name == name; });
}

std::optional<DType> dtype_by_storage(std::string_view storage) {
  constexpr std::string_view kSuffix = "Storage";
  if (storage.ends_with(kSuffix)) {
    storage.remove_suffix(kSuffix.size());
  }
  return find([&](const DTypeInfo& row) {
    return !row.storage.empty() && row.storage == storage;
  });
}

} // namespace lockstep::ckpt
