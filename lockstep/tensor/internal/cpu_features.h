// SPDX-License-Identifier: BSD-3-Clause
//
// What this processor computes with, as far as it decides about speed and bits.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// Whose processor this is. Libraries choose their kernels by it: MKL by the
/// vendor, oneDNN and Lockstep also by the family.
struct CpuModel {
  /// As cpuid says: "GenuineIntel", "AuthenticAMD"; empty where it is not
  /// known.
  std::string vendor = {};
  unsigned family = 0;
};

const CpuModel& cpu_model();

/// Vectors of loops of which there is one for each instruction set.
enum class VectorWidth { kPlain, kAvx2, kAvx512 };

/// The widest vectors that the processor has and that LibTorch's own kernels
/// may use: ATEN_CPU_CAPABILITY narrows both.
VectorWidth widest_vectors();

/// How a processor multiplies numbers of bfloat16: not at all, two pairs in a
/// step (AVX512_BF16), by tiles (AMX). Others than x86 are not known.
enum class Bfloat16Products { kNone, kPairs, kTiles, kUnknown };

Bfloat16Products bfloat16_products();

/// "none", "avx512_bf16", "amx_bf16", "unknown".
std::string_view to_string(Bfloat16Products products);

} // namespace lockstep
