// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/safetensors_dtype.h"

#include <algorithm>
#include <array>

namespace lockstep::ckpt {
namespace {

using enum DType;

// The order of the package's own list: it sorts by it.
constexpr std::array kSafetensorsDTypes{
    SafetensorsDType{"BOOL", 8, kBool},
    SafetensorsDType{"F4", 4, kFloat4E2M1FNX2},
    SafetensorsDType{"F6_E2M3", 6},
    SafetensorsDType{"F6_E3M2", 6},
    SafetensorsDType{"U8", 8, kUInt8},
    SafetensorsDType{"I8", 8, kInt8},
    SafetensorsDType{"F8_E5M2", 8, kFloat8E5M2},
    SafetensorsDType{"F8_E4M3", 8, kFloat8E4M3FN},
    SafetensorsDType{"F8_E8M0", 8, kFloat8E8M0FNU},
    SafetensorsDType{"F8_E4M3FNUZ", 8, kFloat8E4M3FNUZ},
    SafetensorsDType{"F8_E5M2FNUZ", 8, kFloat8E5M2FNUZ},
    SafetensorsDType{"I16", 16, kInt16},
    SafetensorsDType{"U16", 16, kUInt16},
    SafetensorsDType{"F16", 16, kFloat16},
    SafetensorsDType{"BF16", 16, kBFloat16},
    SafetensorsDType{"I32", 32, kInt32},
    SafetensorsDType{"U32", 32, kUInt32},
    SafetensorsDType{"F32", 32, kFloat32},
    SafetensorsDType{"C64", 64, kComplex64},
    SafetensorsDType{"F64", 64, kFloat64},
    SafetensorsDType{"I64", 64, kInt64},
    SafetensorsDType{"U64", 64, kUInt64},
};

} // namespace

std::span<const SafetensorsDType> safetensors_dtypes() {
  return kSafetensorsDTypes;
}

const SafetensorsDType* find_safetensors_dtype(std::string_view name) {
  const auto* row =
      std::ranges::find(kSafetensorsDTypes, name, &SafetensorsDType::name);
  return row == kSafetensorsDTypes.end() ? nullptr : row;
}

const SafetensorsDType* find_safetensors_dtype(DType dtype) {
  const auto* row =
      std::ranges::find(kSafetensorsDTypes, dtype, &SafetensorsDType::dtype);
  return row == kSafetensorsDTypes.end() ? nullptr : row;
}

} // namespace lockstep::ckpt
