// SPDX-License-Identifier: BSD-3-Clause
//
// Element types of safetensors files, as one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

/// One row of the table.
struct SafetensorsDType {
  /// As in the header: "BF16".
  std::string_view name = {};
  /// Units: bits of one element.
  std::uint64_t bits = 0;
  /// PyTorch's type; nothing if it has none.
  std::optional<DType> dtype = {};
};

/// All rows. The safetensors package writes tensors of later rows first.
std::span<const SafetensorsDType> safetensors_dtypes();
/// The row of a name, null if unknown.
const SafetensorsDType* find_safetensors_dtype(std::string_view name);
/// The row of a dtype, null if the format cannot hold it.
const SafetensorsDType* find_safetensors_dtype(DType dtype);

} // namespace lockstep::ckpt
