// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/normalise.h"

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {
namespace {

#if defined(__x86_64__)

bool has_avx2() {
  static const bool answer = __builtin_cpu_supports("avx2") != 0;
  return answer;
}

// Division, not multiplication by an inverse: that would round differently.
// Returns how many pixels are done; the rest, fewer than 8, is the caller's.
[[gnu::target("avx2")]] std::size_t apply_avx2(
    std::span<const std::uint8_t> pixels,
    float mean,
    float std,
    float* out) {
  const __m256 scales = _mm256_set1_ps(255.0F);
  const __m256 means = _mm256_set1_ps(mean);
  const __m256 stds = _mm256_set1_ps(std);
  std::size_t i = 0;
  for (; i + 8 <= pixels.size(); i += 8) {
    const __m128i bytes = _mm_loadu_si64(pixels.data() + i);
    const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 centred = _mm256_sub_ps(_mm256_div_ps(x, scales), means);
    _mm256_storeu_ps(out + i, _mm256_div_ps(centred, stds));
  }
  return i;
}

#else

bool has_avx2() {
  return false;
}

std::size_t apply_avx2(std::span<const std::uint8_t>, float, float, float*) {
  return 0;
}

#endif

} // namespace

Normaliser::Normaliser(float mean, float std) : mean_(mean), std_(std) {
  for (std::size_t value = 0; value < table_.size(); ++value) {
    const float unit = static_cast<float>(value) / 255.0F;
    table_.at(value) = (unit - mean) / std;
  }
}

bool Normaliser::is_vectorised() {
  return has_avx2();
}

void Normaliser::apply(std::span<const std::uint8_t> pixels, float* out) const {
  const std::size_t done =
      has_avx2() ? apply_avx2(pixels, mean_, std_, out) : 0;
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
