// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of batch normalisation share, in CUDA C++: types, packs of
// numbers, and what becomes of them.
#pragma once

#include <string_view>

namespace lockstep::kernels {

inline constexpr std::string_view kGpuNormParts = R"cuda(
typedef long long Long;

struct Float32 {
  static constexpr int kCount = 4;
  typedef float4 Pack;
  static __device__ void unpack(const Pack& pack, float* to) {
    to[0] = pack.x; to[1] = pack.y; to[2] = pack.z; to[3] = pack.w;
  }
  static __device__ Pack pack(const float* from) {
    return make_float4(from[0], from[1], from[2], from[3]);
  }
};

struct Bfloat16 {
  static constexpr int kCount = 8;
  typedef uint4 Pack;
  static __device__ void unpack(const Pack& pack, float* to) {
    const unsigned words[4] = {pack.x, pack.y, pack.z, pack.w};
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  }
  // To the nearest, of two to the even one.
  static __device__ unsigned rounded(float number) {
    const unsigned bits = __float_as_uint(number);
    return number != number ? 0x7fc0u
                            : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  }
  static __device__ Pack pack(const float* from) {
    unsigned words[4];
    for (int i = 0; i < 4; ++i) {
      words[i] = rounded(from[2 * i]) | rounded(from[2 * i + 1]) << 16;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

template <class Type>
__device__ void read(const void* table, Long at, float* to) {
  Type::unpack(static_cast<const typename Type::Pack*>(table)[at], to);
}

template <class Type>
__device__ float number_at(const void* table, Long at) {
  float pack[Type::kCount];
  read<Type>(table, at / Type::kCount, pack);
  float found = 0;
  for (int i = 0; i < Type::kCount; ++i) { // without an address of a register
    found = i == at % Type::kCount ? pack[i] : found;
  }
  return found;
}

template <class Type>
__device__ void write(void* table, Long at, const float* from) {
  static_cast<typename Type::Pack*>(table)[at] = Type::pack(from);
}

// The numbers of this thread's channels, of one row of float32 [..., channels].
template <int kCount>
__device__ void read_channels(const float* row, int pack, float* to) {
  for (int i = 0; i < kCount; ++i) {
    to[i] = row[pack * kCount + i];
  }
}

constexpr int kWarp = 32;

// relu(number * scale + shift + added), or without ReLU. NaN stays.
template <int kCount>
__device__ void result_of(
    const float* scale, const float* shift, const float* added, int has_relu,
    float* number) {
  for (int i = 0; i < kCount; ++i) {
    const float result = number[i] * scale[i] + shift[i] + added[i];
    number[i] = has_relu && result <= 0 ? 0 : result;
  }
}

// A pack of x, and what has passed the ReLU of its gradient: where the ReLU's
// output was not positive, nothing. Without `output` that is x * scale + shift.
template <class Type>
__device__ void passed(
    const void* grad, const void* x, const void* output, Long at,
    const float* scale, const float* shift, int has_relu, float* g,
    float* number) {
  float result[Type::kCount];
  read<Type>(grad, at, g);
  read<Type>(x, at, number);
  if (output != nullptr) {
    read<Type>(output, at, result);
  }
  for (int i = 0; i < Type::kCount; ++i) {
    const float was =
        output == nullptr ? number[i] * scale[i] + shift[i] : result[i];
    g[i] = has_relu && was <= 0 ? 0 : g[i];
  }
}

// g * by_grad + (number - mean) * by_distance + constant
template <int kCount>
__device__ void input_gradient(
    const float* by_grad, const float* by_distance, const float* constant,
    const float* number, const float* mean, float* g) {
  for (int i = 0; i < kCount; ++i) {
    g[i] = g[i] * by_grad[i] + (number[i] - mean[i]) * by_distance[i] +
           constant[i];
  }
}

// What rounding may have made of a variance. NaN stays.
__device__ double not_negative(double variance) {
  return variance < 0 ? 0 : variance;
}

// The layer's own numbers of a channel, read early: they are wanted in the end.
struct Channel {
  float weight;
  float bias;
  float running_mean = 0;
  float running_var = 0;

  __device__ Channel(
      int c, const float* weights, const float* biases,
      const float* running_means, const float* running_vars)
      : weight(weights == nullptr ? 1.0f : weights[c]),
        bias(biases == nullptr ? 0.0f : biases[c]) {
    if (running_means != nullptr) {
      running_mean = running_means[c];
      running_var = running_vars[c];
    }
  }
};

// What backward and normalise want of a channel: rows of [4, channels].
__device__ void write_parameters(
    const Channel& channel, double mean, double variance, double eps,
    int channels, int c, float* parameters) {
  const double invstd = 1 / sqrt(variance + eps);
  const float scale = invstd * channel.weight;
  parameters[c] = mean;
  parameters[channels + c] = invstd;
  parameters[2 * channels + c] = scale;
  // Of the rounded scale: numbers near the mean lose nothing.
  parameters[3 * channels + c] = channel.bias - mean * scale;
}

// Moves the running statistics towards the batch's, if there are any.
__device__ void move(
    const Channel& channel, double mean, double variance, Long rows,
    double momentum, int c, float* running_mean, float* running_var) {
  if (running_mean != nullptr) {
    running_mean[c] = momentum * mean + (1 - momentum) * channel.running_mean;
    running_var[c] = momentum * (variance * rows / (rows - 1)) +
                     (1 - momentum) * channel.running_var;
  }
}

// With s: invstd, n: rows, g and d as above:
//   bias: sum(g)    weight: s sum(g d)
//   x: weight s (g - sum(g) / n - d s^2 sum(g d) / n)
// `factors`: of the channel, `step` between them.
__device__ void write_gradients(
    double sum, double product, Long rows, float weight, double s, int c,
    float* of_weight, float* of_bias, float* factors, int step) {
  const double by_grad = s * weight;
  of_bias[c] = sum;
  of_weight[c] = product * s;
  factors[0] = by_grad;
  factors[step] = -by_grad * s * s * product / rows;
  factors[2 * step] = -by_grad * sum / rows;
}
)cuda";

} // namespace lockstep::kernels
