// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/dtype_map.h"

#include <array>

namespace lockstep {
namespace {

struct DTypeRow {
  ckpt::DType dtype = ckpt::DType::kFloat32;
  c10::ScalarType type = c10::ScalarType::Float;
};

using c10::ScalarType;
using ckpt::DType;

// Quantized types are absent: their tensors need a quantizer, too.
constexpr std::array kRows{
    DTypeRow{DType::kFloat64, ScalarType::Double},
    DTypeRow{DType::kFloat32, ScalarType::Float},
    DTypeRow{DType::kFloat16, ScalarType::Half},
    DTypeRow{DType::kBFloat16, ScalarType::BFloat16},
    DTypeRow{DType::kInt64, ScalarType::Long},
    DTypeRow{DType::kInt32, ScalarType::Int},
    DTypeRow{DType::kInt16, ScalarType::Short},
    DTypeRow{DType::kInt8, ScalarType::Char},
    DTypeRow{DType::kUInt8, ScalarType::Byte},
    DTypeRow{DType::kBool, ScalarType::Bool},
    DTypeRow{DType::kComplex128, ScalarType::ComplexDouble},
    DTypeRow{DType::kComplex64, ScalarType::ComplexFloat},
    DTypeRow{DType::kUInt16, ScalarType::UInt16},
    DTypeRow{DType::kUInt32, ScalarType::UInt32},
    DTypeRow{DType::kUInt64, ScalarType::UInt64},
    DTypeRow{DType::kFloat8E5M2, ScalarType::Float8_e5m2},
    DTypeRow{DType::kFloat8E4M3FN, ScalarType::Float8_e4m3fn},
    DTypeRow{DType::kFloat8E5M2FNUZ, ScalarType::Float8_e5m2fnuz},
    DTypeRow{DType::kFloat8E4M3FNUZ, ScalarType::Float8_e4m3fnuz},
    DTypeRow{DType::kFloat8E8M0FNU, ScalarType::Float8_e8m0fnu},
    DTypeRow{DType::kFloat4E2M1FNX2, ScalarType::Float4_e2m1fn_x2},
    DTypeRow{DType::kComplex32, ScalarType::ComplexHalf},
    DTypeRow{DType::kBits8, ScalarType::Bits8},
    DTypeRow{DType::kBits16, ScalarType::Bits16},
    DTypeRow{DType::kBits1x8, ScalarType::Bits1x8},
    DTypeRow{DType::kBits2x4, ScalarType::Bits2x4},
    DTypeRow{DType::kBits4x2, ScalarType::Bits4x2},
};

} // namespace

std::optional<c10::ScalarType> to_scalar_type(ckpt::DType dtype) {
  for (const DTypeRow& row : kRows) {
    if (row.dtype == dtype) {
      return row.type;
    }
  }
  return std::nullopt;
}

std::optional<ckpt::DType> to_dtype(c10::ScalarType type) {
  for (const DTypeRow& row : kRows) {
    if (row.type == type) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

} // namespace lockstep
