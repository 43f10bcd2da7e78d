// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cmath>
#include <cstddef>

#include "lockstep/data/images.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep {
namespace {

constexpr float kScale = 255;

// A division by `by`, whose inverse is known: the product, and a correction by
// what is left over. With one rounding in each `fma` the result is the rounded
// quotient for nearly all numbers (P. Markstein, "Computation of elementary
// functions on the IBM RISC System/6000 processor", 1990).
struct Divisor {
  float by = 1;
  float inverse = 1;

  explicit Divisor(float divisor) : by(divisor), inverse(1 / divisor) {}

  [[nodiscard]] float divide(float x) const {
    const float guess = x * inverse;
    return std::fma(std::fma(-by, guess, x), inverse, guess);
  }
};

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] __m256 divide(__m256 x, const Divisor& divisor) {
  const __m256 inverse = _mm256_set1_ps(divisor.inverse);
  const __m256 guess = _mm256_mul_ps(x, inverse);
  const __m256 left = _mm256_fnmadd_ps(_mm256_set1_ps(divisor.by), guess, x);
  return _mm256_fmadd_ps(left, inverse, guess);
}

// Returns how many pixels are done; the rest, fewer than 8, is the caller's.
[[gnu::target("avx2,fma")]] std::size_t apply_fma(
    std::span<const std::uint8_t> pixels,
    float mean,
    float std,
    float* out) {
  const Divisor scale(kScale);
  const Divisor deviation(std);
  const __m256 means = _mm256_set1_ps(mean);
  std::size_t i = 0;
  for (; i + 8 <= pixels.size(); i += 8) {
    const __m128i bytes = _mm_loadu_si64(pixels.data() + i);
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 centred = _mm256_sub_ps(divide(x, scale), means);
    _mm256_storeu_ps(out + i, divide(centred, deviation));
  }
  return i;
}

#else

std::size_t apply_fma(std::span<const std::uint8_t>, float, float, float*) {
  return 0;
}

#endif

} // namespace

Normaliser::Normaliser(float mean, float std)
    : mean_(mean),
      std_(std),
      is_vectorised_(widest_vectors() >= VectorWidth::kAvx2) {
  const Divisor scale(kScale);
  const Divisor deviation(std);
  for (std::size_t value = 0; value < table_.size(); ++value) {
    const auto x = static_cast<float>(value);
    table_.at(value) = (x / kScale - mean) / std;
    const float fast = deviation.divide(scale.divide(x) - mean);
    is_vectorised_ =
        is_vectorised_ && std::bit_cast<std::uint32_t>(fast) ==
                              std::bit_cast<std::uint32_t>(table_.at(value));
  }
}

void Normaliser::apply(std::span<const std::uint8_t> pixels, float* out) const {
  const std::size_t done =
      is_vectorised_ ? apply_fma(pixels, mean_, std_, out) : 0;
  apply_table(pixels.subspan(done), out + done);
}

void Normaliser::apply_table(std::span<const std::uint8_t> pixels, float* out)
    const {
  const float* values = table_.data();
  for (const std::uint8_t pixel : pixels) {
    *out++ = values[pixel];
  }
}

} // namespace lockstep
