// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/dtype_map.h"

#include <array>

namespace lockstep {
namespace {

struct Row {
  ckpt::DType dtype = ckpt::DType::kFloat32;
  c10::ScalarType type = c10::ScalarType::Float;
};

using c10::ScalarType;
using ckpt::DType;

// Quantized types are absent: their tensors need a quantizer, too.
constexpr std::array kRows{
    Row{DType::kFloat64, ScalarType::Double},
    Row{DType::kFloat32, ScalarType::Float},
    Row{DType::kFloat16, ScalarType::Half},
    Row{DType::kBFloat16, ScalarType::BFloat16},
    Row{DType::kInt64, ScalarType::Long},
    Row{DType::kInt32, ScalarType::Int},
    Row{DType::kInt16, ScalarType::Short},
    Row{DType::kInt8, ScalarType::Char},
    Row{DType::kUInt8, ScalarType::Byte},
    Row{DType::kBool, ScalarType::Bool},
    Row{DType::kComplex128, ScalarType::ComplexDouble},
    Row{DType::kComplex64, ScalarType::ComplexFloat},
    Row{DType::kUInt16, ScalarType::UInt16},
    Row{DType::kUInt32, ScalarType::UInt32},
    Row{DType::kUInt64, ScalarType::UInt64},
    Row{DType::kFloat8E5M2, ScalarType::Float8_e5m2},
    Row{DType::kFloat8E4M3FN, ScalarType::Float8_e4m3fn},
    Row{DType::kFloat8E5M2FNUZ, ScalarType::Float8_e5m2fnuz},
    Row{DType::kFloat8E4M3FNUZ, ScalarType::Float8_e4m3fnuz},
    Row{DType::kFloat8E8M0FNU, ScalarType::Float8_e8m0fnu},
    Row{DType::kFloat4E2M1FNX2, ScalarType::Float4_e2m1fn_x2},
    Row{DType::kComplex32, ScalarType::ComplexHalf},
    Row{DType::kBits8, ScalarType::Bits8},
    Row{DType::kBits16, ScalarType::Bits16},
    Row{DType::kBits1x8, ScalarType::Bits1x8},
    Row{DType::kBits2x4, ScalarType::Bits2x4},
    Row{DType::kBits4x2, ScalarType::Bits4x2},
};

} // namespace

std::optional<c10::ScalarType> to_scalar_type(ckpt::DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) {
      return row.type;
    }
  }
  return std::nullopt;
}

std::optional<ckpt::DType> to_dtype(c10::ScalarType type) {
  for (const Row& row : kRows) {
    if (row.type == type) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

} // namespace lockstep
