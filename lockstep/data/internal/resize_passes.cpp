// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/resize_passes.h"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep::internal {
namespace {

// PyTorch's compiler multiplies four numbers at a time and then adds them in
// order. What is left over is multiplied and added in one instruction, where
// the kernels are built for processors that have it.
std::size_t fused_terms(std::size_t terms) {
  constexpr std::size_t kBlock = 4;
  return (terms - 1) % kBlock;
}

// Not inlined: a rounding of its own, never one instruction with a sum.
[[gnu::noinline]] float product(float a, float b) {
  return a * b;
}

float weighted_sum(
    std::span<const float> weights,
    const float* in,
    std::int64_t stride) {
#if defined(__x86_64__)
  const std::size_t fused = 0;
#else
  const std::size_t fused = fused_terms(weights.size());
#endif
  float sum = in[0] * weights[0];
  std::size_t i = 1;
  for (; i + fused < weights.size(); ++i) {
    in += stride;
    sum += product(in[0], weights[i]);
  }
  for (; i < weights.size(); ++i) {
    in += stride;
    sum = std::fma(in[0], weights[i], sum);
  }
  return sum;
}

#if defined(__x86_64__)

bool has_vectors() {
  static const bool answer = widest_vectors() >= VectorWidth::kAvx2;
  return answer;
}

// A rounding of its own, as `product`: the compiler does not see the product.
template <class Vector>
[[gnu::always_inline]] inline Vector rounded(Vector value) {
  asm("" : "+x"(value));
  return value;
}

// Four lines or channels side by side.
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m128 sum_of_four(
    std::span<const float> weights,
    const float* in,
    std::int64_t stride) {
  const std::size_t rest = weights.size() - fused_terms(weights.size());
  __m128 sum = _mm_mul_ps(_mm_loadu_ps(in), _mm_set1_ps(weights[0]));
  std::size_t i = 1;
  for (; i < rest; ++i) {
    in += stride;
    const __m128 term = _mm_mul_ps(_mm_loadu_ps(in), _mm_set1_ps(weights[i]));
    sum = _mm_add_ps(sum, rounded(term));
  }
  for (; i < weights.size(); ++i) {
    in += stride;
    sum = _mm_fmadd_ps(_mm_loadu_ps(in), _mm_set1_ps(weights[i]), sum);
  }
  return sum;
}

[[gnu::target("avx2,fma"), gnu::always_inline]] inline float sum_of_one(
    std::span<const float> weights,
    const float* in,
    std::int64_t stride) {
  const std::size_t rest = weights.size() - fused_terms(weights.size());
  float sum = in[0] * weights[0];
  std::size_t i = 1;
  for (; i < rest; ++i) {
    in += stride;
    sum += rounded(in[0] * weights[i]);
  }
  for (; i < weights.size(); ++i) {
    in += stride;
    sum = std::fma(in[0], weights[i], sum);
  }
  return sum;
}

// Three channels and a number that the next pixel replaces.
[[gnu::target("avx2,fma")]] void
resize_rgb(const ResizeAxis& axis, const float* line, float* out) {
  constexpr std::int64_t kChannels = 3;
  for (const ResizeAxis::Output& output : axis.outputs) {
    const float* in = line + output.first_input * kChannels;
    _mm_storeu_ps(out, sum_of_four(output.weights, in, kChannels));
    out += kChannels;
  }
}

[[gnu::target("avx2,fma")]] void resize_any(
    const ResizeAxis& axis,
    std::int64_t channels,
    const float* line,
    float* out) {
  for (const ResizeAxis::Output& output : axis.outputs) {
    const float* in = line + output.first_input * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      *out++ = sum_of_one(output.weights, in + c, channels);
    }
  }
}

[[gnu::target("avx2,fma")]] void sum_in_fours(
    std::span<const float> weights,
    const float* lines,
    std::int64_t stride,
    std::int64_t count,
    float* out) {
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    _mm_storeu_ps(out + i, sum_of_four(weights, lines + i, stride));
  }
  for (; i < count; ++i) {
    out[i] = sum_of_one(weights, lines + i, stride);
  }
}

// Returns how many are done.
[[gnu::target("avx2")]] std::size_t round_in_eights(
    std::span<const float> values,
    std::uint8_t* out) {
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    const __m256i whole = _mm256_cvtps_epi32(_mm256_loadu_ps(&values[i]));
    const __m128i shorts = _mm_packs_epi32(
        _mm256_castsi256_si128(whole),
        _mm256_extracti128_si256(whole, 1));
    _mm_storeu_si64(out + i, _mm_packus_epi16(shorts, shorts));
  }
  return i;
}

#endif

} // namespace

void resize_columns(
    const ResizeAxis& axis,
    std::int64_t channels,
    const float* line,
    float* out) {
#if defined(__x86_64__)
  if (has_vectors()) {
    return channels == 3 ? resize_rgb(axis, line, out)
                         : resize_any(axis, channels, line, out);
  }
#endif
  for (const ResizeAxis::Output& output : axis.outputs) {
    const float* in = line + output.first_input * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      *out++ = weighted_sum(output.weights, in + c, channels);
    }
  }
}

void sum_lines(
    std::span<const float> weights,
    const float* lines,
    std::int64_t stride,
    std::int64_t count,
    float* out) {
#if defined(__x86_64__)
  if (has_vectors()) {
    return sum_in_fours(weights, lines, stride, count, out);
  }
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = weighted_sum(weights, lines + i, stride);
  }
}

void round_to_bytes(std::span<const float> values, std::uint8_t* out) {
  std::size_t done = 0;
#if defined(__x86_64__)
  done = has_vectors() ? round_in_eights(values, out) : 0;
#endif
  std::ranges::transform(values.subspan(done), out + done, [](float value) {
    return static_cast<std::uint8_t>(
        std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  });
}

} // namespace lockstep::internal
