// SPDX-License-Identifier: BSD-3-Clause
//
// Vectors of numbers as wide as registers, for functions of which there is one
// for each instruction set.
//
// Note [One source, several instruction sets]
// A function with __attribute__((target(...))) may use those instructions in a
// program that runs without them, if it is never called there. Each loop is a
// template that is inlined into one such function per instruction set: vectors
// of the compilers' own, wide as the registers, become its instructions. No
// function of another header is called inside, of which the linker might keep
// the copy with instructions that another processor lacks: only the sources of
// such loops include this.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/tensor/internal/cpu_features.h"

// Vectors are passed between functions that are inlined, so that no convention
// of calls is concerned.
#pragma GCC diagnostic ignored "-Wpsabi"

#define LOCKSTEP_INLINE [[gnu::always_inline]] inline

// The instruction sets, for one function or variable each.
#define LOCKSTEP_AVX2 [[gnu::target("avx2,fma")]]
#define LOCKSTEP_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,fma")]]

// Arrays of the language: see the note above.
// NOLINTBEGIN(modernize-avoid-c-arrays, bugprone-macro-parentheses)

namespace lockstep::kernels::internal {

/// Vectors of `kBytes`, as types that do not depend on a parameter: compilers
/// convert no others.
template <int kBytes>
struct Vectors;

#define LOCKSTEP_VECTORS(BYTES)                                   \
  template <>                                                     \
  struct Vectors<BYTES> {                                         \
    using Floats [[gnu::vector_size(BYTES)]] = float;             \
    using Words [[gnu::vector_size(BYTES)]] = std::uint32_t;      \
    using Halves [[gnu::vector_size(BYTES / 2)]] = std::uint16_t; \
    LOCKSTEP_INLINE static Words widened(const Halves& values) {  \
      return __builtin_convertvector(values, Words);              \
    }                                                             \
    LOCKSTEP_INLINE static Halves narrowed(const Words& values) { \
      return __builtin_convertvector(values, Halves);             \
    }                                                             \
  };
LOCKSTEP_VECTORS(16)
LOCKSTEP_VECTORS(32)
LOCKSTEP_VECTORS(64)

/// Vectors of float32, also from and to the bits of bfloat16.
template <int kBytes>
struct Lanes : Vectors<kBytes> {
  using V = Vectors<kBytes>;
  using Floats = typename V::Floats;
  using Words = typename V::Words;
  using Halves = typename V::Halves;
  static constexpr std::int64_t kCount = kBytes / 4;

  LOCKSTEP_INLINE static Floats all(float value) {
    return Floats{} + value;
  }

  LOCKSTEP_INLINE static Floats load(const float* from) {
    Floats result;
    __builtin_memcpy(&result, from, sizeof result);
    return result;
  }

  LOCKSTEP_INLINE static Floats load(const std::uint16_t* from) {
    Halves bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    // NOLINTNEXTLINE(readability-magic-numbers): the upper half of a float32
    return reinterpret_cast<Floats>(V::widened(bits) << 16U);
  }

  LOCKSTEP_INLINE static void store(float* to, const Floats& value) {
    __builtin_memcpy(to, &value, sizeof value);
  }

  // To the nearest, ties to even, as PyTorch.
  LOCKSTEP_INLINE static void store(std::uint16_t* to, const Floats& value) {
    const auto bits = reinterpret_cast<Words>(value);
    const Words rounded = (bits + (0x7fffU + ((bits >> 16U) & 1U))) >> 16U;
    const Words nan = Words{} + 0x7fc0U;
    const Halves halves = V::narrowed(value != value ? nan : rounded);
    __builtin_memcpy(to, &halves, sizeof halves);
  }

  LOCKSTEP_INLINE static float sum(const Floats& value) {
    float lanes[kCount];
    __builtin_memcpy(lanes, &value, sizeof lanes);
    for (std::int64_t width = kCount / 2; width > 0; width /= 2) {
      for (std::int64_t i = 0; i < width; ++i) {
        lanes[i] += lanes[i + width];
      }
    }
    return lanes[0];
  }
};

/// Numbers of a row from some place on: a whole vector, or fewer at its end.
/// Lanes beyond are 0 when read, and not written.
template <int kBytes, bool kIsWhole>
struct Part {
  using L = Lanes<kBytes>;
  using Floats = typename L::Floats;

  std::int64_t at = 0;
  std::int64_t count = L::kCount;

  template <class T>
  LOCKSTEP_INLINE Floats load(const T* row) const {
    if constexpr (kIsWhole) {
      return L::load(row + at);
    } else {
      T padded[L::kCount] = {};
      for (std::int64_t i = 0; i < count; ++i) {
        padded[i] = row[at + i];
      }
      return L::load(padded);
    }
  }

  template <class T>
  LOCKSTEP_INLINE void store(T* row, const Floats& value) const {
    if constexpr (kIsWhole) {
      L::store(row + at, value);
    } else {
      T padded[L::kCount];
      L::store(padded, value);
      for (std::int64_t i = 0; i < count; ++i) {
        row[at + i] = padded[i];
      }
    }
  }

  /// 1 in lanes that are numbers of the row, else 0.
  LOCKSTEP_INLINE Floats ones() const {
    if constexpr (kIsWhole) {
      return L::all(1);
    } else {
      float lanes[L::kCount] = {};
      for (std::int64_t i = 0; i < count; ++i) {
        lanes[i] = 1;
      }
      return L::load(lanes);
    }
  }

  /// Parameters of these columns.
  template <bool kIsPlane>
  LOCKSTEP_INLINE Floats parameter(const float* values) const {
    return kIsPlane ? L::all(values[0]) : load(values);
  }
};

/// Of the tables of loops with 64, 32 and 16 bytes, which are called Avx512,
/// Avx2 and Plain, those that may run (widest_vectors): the widest ones first.
template <class Table>
std::vector<const Table*>
usable_tables(const Table* avx512, const Table* avx2, const Table* plain) {
  std::vector<const Table*> usable;
  if (widest_vectors() >= VectorWidth::kAvx512) {
    usable.push_back(avx512);
  }
  if (widest_vectors() >= VectorWidth::kAvx2) {
    usable.push_back(avx2);
  }
  usable.push_back(plain);
  return usable;
}

// NOLINTEND(modernize-avoid-c-arrays, bugprone-macro-parentheses)

} // namespace lockstep::kernels::internal
