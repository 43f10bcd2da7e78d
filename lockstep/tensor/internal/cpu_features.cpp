// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/internal/cpu_features.h"

#include <array>
#include <string>

#include <ATen/Version.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace lockstep {
namespace {

#ifdef __x86_64__

struct Registers {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

// Zeros where the processor does not know the leaf.
Registers ask(unsigned leaf) {
  Registers answer;
  __get_cpuid_count(leaf, 0, &answer.a, &answer.b, &answer.c, &answer.d);
  return answer;
}

// Whether the operating system keeps the registers of tiles (XCR0).
bool are_tiles_kept() {
  constexpr unsigned kOsXsave = 1U << 27U;
  if ((ask(1).c & kOsXsave) == 0) {
    return false;
  }
  constexpr unsigned kTileStates = 3U << 17U;
  unsigned low = 0;
  unsigned high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileStates) == kTileStates;
}

bool has_tiles() {
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kAmxBf16 = 1U << 22U;
  return (ask(kFeatures).d & kAmxBf16) != 0 && are_tiles_kept();
}

CpuModel ask_model() {
  const Registers vendor = ask(0);
  CpuModel model;
  for (const unsigned letters : {vendor.b, vendor.d, vendor.c}) {
    model.vendor.append(
        reinterpret_cast<const char*>(&letters),
        sizeof letters);
  }
  // The sum of both fields, as in AMD's manuals; Intel's second one is 0.
  const unsigned version = ask(1).a;
  model.family = ((version >> 8U) & 0xFU) + ((version >> 20U) & 0xFFU);
  return model;
}

#else

CpuModel ask_model() {
  return {};
}

#endif

} // namespace

const CpuModel& cpu_model() {
  static const CpuModel model = ask_model();
  return model;
}

VectorWidth widest_vectors() {
#ifdef __x86_64__
  static const std::string allowed = at::get_cpu_capability();
  if (allowed == "AVX512" && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    return VectorWidth::kAvx512;
  }
  if (allowed != "DEFAULT" && __builtin_cpu_supports("avx2") != 0 &&
      __builtin_cpu_supports("fma") != 0) {
    return VectorWidth::kAvx2;
  }
#endif
  return VectorWidth::kPlain;
}

Bfloat16Products bfloat16_products() {
#ifdef __x86_64__
  // Asked once: a virtual machine leaves for its host to answer.
  static const Bfloat16Products products =
      has_tiles()                                 ? Bfloat16Products::kTiles
      : __builtin_cpu_supports("avx512bf16") != 0 ? Bfloat16Products::kPairs
                                                  : Bfloat16Products::kNone;
  return products;
#else
  return Bfloat16Products::kUnknown;
#endif
}

std::string_view to_string(Bfloat16Products products) {
  constexpr std::array<std::string_view, 4> kNames{
      "none",
      "avx512_bf16",
      "amx_bf16",
      "unknown"};
  return kNames.at(static_cast<std::size_t>(products));
}

} // namespace lockstep
