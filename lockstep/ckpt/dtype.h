// SPDX-License-Identifier: BSD-3-Clause
//
// Element types of tensors in checkpoint files, as one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep::ckpt {

/// Element type; names are PyTorch's (`torch.float32` -> kFloat32).
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex128,
  kComplex64,
  kQInt8,
  kQUInt8,
  kQInt32,
  kQUInt4x2,
  kQUInt2x4,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8E5M2,
  kFloat8E4M3FN,
  kFloat8E5M2FNUZ,
  kFloat8E4M3FNUZ,
  kFloat8E8M0FNU,
  kFloat4E2M1FNX2,
  kComplex32,
  kBits8,
  kBits16,
  kBits1x8,
  kBits2x4,
  kBits4x2,
};

/// One row of the table.
struct DTypeInfo {
  DType dtype = DType::kFloat32;
  /// PyTorch's name without "torch.": "float32".
  std::string_view name = {};
  /// Units: bytes per storage element.
  std::size_t size = 0;
  /// Storage class without "Storage" ("Float"); empty where PyTorch uses an
  /// untyped storage with `_rebuild_tensor_v3`.
  std::string_view storage = {};
  /// Elements that share a byte. The last dimension is padded to whole bytes:
  /// shape [3, 3] of quint4x2 takes 6 bytes.
  std::uint8_t per_byte = 1;
};

/// All rows, in the order of `DType`.
std::span<const DTypeInfo> dtype_table();
const DTypeInfo& dtype_info(DType dtype);
/// By PyTorch's name ("float32"); nothing if unknown.
std::optional<DType> dtype_by_name(std::string_view name);
/// By storage class ("Float" or "FloatStorage").
std::optional<DType> dtype_by_storage(std::string_view storage);

} // namespace lockstep::ckpt
