// SPDX-License-Identifier: BSD-3-Clause
//
// The message is a polynomial over GF(2), 256 bytes of which are held in four
// registers. A step moves what is held 256 bytes ahead, by a product with that
// power of x modulo the CRC's polynomial, and adds the next 256 bytes. What is
// held at the end has the same remainder as all of the message.
#include "lockstep/ckpt/zip/crc32_fold.h"

#include <array>

#ifdef __x86_64__
#include <immintrin.h>
#endif
// Clang's C++ has no _Bool, which the header needs.
#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)
#include <sys/platform/x86.h>
#define LOCKSTEP_HAS_CPU_FEATURES
#endif

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320; // reflected

// Remainders of one byte.
constexpr auto kBytes = [] {
  constexpr unsigned kBits = 8;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (unsigned bit = 0; bit < kBits; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    table.at(i) = crc;
  }
  return table;
}();

} // namespace

std::uint32_t short_crc32(ByteSpan bytes, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ kBytes[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

#ifdef __x86_64__

namespace {

constexpr std::size_t kRegisterBytes = 64;
constexpr unsigned kMovedBits = 8 * kFoldBytes;
// The processor itself does not fetch ahead from one page to the next.
constexpr std::size_t kAhead = 4096;

// x^n modulo the polynomial of CRC-32, lowest power in the highest bit, and one
// bit up since products of such numbers come out one bit low.
constexpr std::uint64_t power_of_x(unsigned n) {
  std::uint32_t power = 0x80000000; // 1
  for (unsigned i = 0; i < n; ++i) {
    power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  }
  return std::uint64_t{power} << 1;
}

// In a struct, for its attributes are lost on a template's argument.
struct Register {
  __m512i bits;
};

} // namespace

bool can_fold_crc32() {
#ifdef LOCKSTEP_HAS_CPU_FEATURES
  // The C library has asked the processor already.
  return CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(VPCLMULQDQ);
#else
  return __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0;
#endif
}

[[gnu::target("avx512f,vpclmulqdq")]] std::uint32_t fold_crc32(
    ByteSpan bytes,
    std::uint32_t seed) {
  constexpr std::size_t kRegisters = kFoldBytes / kRegisterBytes;
  // In a reflected number the first 64 bits are the higher powers.
  constexpr auto kLow = static_cast<long long>(power_of_x(kMovedBits + 32));
  constexpr auto kHigh = static_cast<long long>(power_of_x(kMovedBits - 32));
  const __m512i powers =
      _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
  const std::byte* next = bytes.data();
  std::array<Register, kRegisters> held;
  for (Register& part : held) {
    part.bits = _mm512_loadu_si512(next);
    next += kRegisterBytes;
  }
  const auto start = static_cast<int>(~seed);
  held[0].bits = _mm512_xor_si512(
      held[0].bits,
      _mm512_zextsi128_si512(_mm_cvtsi32_si128(start)));
  while (next != bytes.data() + bytes.size()) {
    for (Register& part : held) {
      constexpr int kSumOfThree = 0x96;
      part.bits = _mm512_ternarylogic_epi64(
          _mm512_clmulepi64_epi128(part.bits, powers, 0x00),
          _mm512_clmulepi64_epi128(part.bits, powers, 0x11),
          _mm512_loadu_si512(next),
          kSumOfThree);
      _mm_prefetch(next + kAhead, _MM_HINT_T0);
      next += kRegisterBytes;
    }
  }
  // The seed is in there already: all ones stand for none.
  return short_crc32(std::as_bytes(std::span(held)), ~0U);
}

#else

bool can_fold_crc32() {
  return false;
}

std::uint32_t fold_crc32(ByteSpan bytes, std::uint32_t seed) {
  return short_crc32(bytes, seed);
}

#endif

} // namespace lockstep::ckpt::internal
