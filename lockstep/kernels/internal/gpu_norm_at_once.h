// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation of tables of few rows, in CUDA C++.
#pragma once

#include <string_view>

namespace lockstep::kernels {

inline constexpr std::string_view kGpuNormAtOnce = R"cuda(
// Tables of few rows: a block has all rows of a pack of channels, and one kernel
// does it all.
constexpr int kLines = 512;

// Adds up two numbers of each channel over all threads of a block. The sums are
// those of the threads whose number is a channel's.
template <int kCount>
__device__ void add_up_all(
    float* first, float* second, double* sum_of_first, double* sum_of_second) {
  constexpr int kNumbers = 2 * kCount;
  __shared__ float shared[kLines / kWarp][kNumbers];
  float numbers[kNumbers];
  for (int i = 0; i < kCount; ++i) {
    numbers[i] = first[i];
    numbers[kCount + i] = second[i];
  }
  // Of two lanes each goes on with one half of the numbers, as long as it has
  // several: lane l ends with number l / (kWarp / kNumbers).
  int left = kNumbers;
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    if (left > 1) {
      left /= 2;
      const bool is_upper = threadIdx.x & offset;
#pragma unroll
      for (int i = 0; i < left; ++i) {
        const float kept = is_upper ? numbers[left + i] : numbers[i];
        const float given = is_upper ? numbers[i] : numbers[left + i];
        numbers[i] = kept + __shfl_xor_sync(0xffffffffu, given, offset);
      }
    } else {
      numbers[0] += __shfl_xor_sync(0xffffffffu, numbers[0], offset);
    }
  }
  constexpr int kLanes = kWarp / kNumbers;
  const int lane = threadIdx.x % kWarp;
  if (lane % kLanes == 0) {
    shared[threadIdx.x / kWarp][lane / kLanes] = numbers[0];
  }
  __syncthreads();
  *sum_of_first = 0;
  *sum_of_second = 0;
  if (threadIdx.x < kCount) {
    for (int warp = 0; warp < blockDim.x / kWarp; ++warp) {
      *sum_of_first += shared[warp][threadIdx.x];
      *sum_of_second += shared[warp][kCount + threadIdx.x];
    }
  }
}

template <class Type>
__device__ void normalise_at_once(
    const void* __restrict__ x, const void* __restrict__ addend, int rows,
    int channels, const float* weight, const float* bias, double eps,
    double momentum, float* running_mean, float* running_var, int has_relu,
    float* parameters, void* __restrict__ y) {
  constexpr int kCount = Type::kCount;
  __shared__ float own_parameters[4][kCount];
  const int packs = channels / kCount;
  // Of the threads that have a channel.
  const int c = blockIdx.x * kCount + threadIdx.x % kCount;
  const Channel channel(c, weight, bias, running_mean, running_var);
  const float first = number_at<Type>(x, c);
  float base[kCount];
  float sum[kCount] = {};
  float square[kCount] = {};
  read<Type>(x, blockIdx.x, base);
#pragma unroll 4
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    float number[kCount];
    read<Type>(x, Long(row) * packs + blockIdx.x, number);
    for (int i = 0; i < kCount; ++i) {
      const float distance = number[i] - base[i];
      sum[i] += distance;
      square[i] += distance * distance;
    }
  }
  double all;
  double all_squares;
  add_up_all<kCount>(sum, square, &all, &all_squares);
  if (threadIdx.x < kCount) {
    const double distance = all / rows; // of the mean from the base
    const double variance =
        not_negative(all_squares / rows - distance * distance);
    const double mean = first + distance;
    write_parameters(
        channel, mean, variance, eps, kCount, threadIdx.x, own_parameters[0]);
    for (int i = 0; i < 4; ++i) {
      parameters[i * channels + c] = own_parameters[i][threadIdx.x];
    }
    move(channel, mean, variance, rows, momentum, c, running_mean, running_var);
  }
  __syncthreads();
  const float* const scale = own_parameters[2];
  const float* const shift = own_parameters[3];
#pragma unroll 2
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const Long at = Long(row) * packs + blockIdx.x;
    float number[kCount];
    float added[kCount] = {};
    read<Type>(x, at, number);
    if (addend != nullptr) {
      read<Type>(addend, at, added);
    }
    result_of<kCount>(scale, shift, added, has_relu, number);
    write<Type>(y, at, number);
  }
}

template <class Type>
__device__ void gradients_at_once(
    const void* __restrict__ grad, const void* __restrict__ x,
    const void* __restrict__ output, int rows, int channels,
    const float* weight, const float* __restrict__ parameters, int has_relu,
    void* kept, float* of_weight, float* of_bias, void* __restrict__ result) {
  constexpr int kCount = Type::kCount;
  __shared__ float factors[3][kCount];
  const int packs = channels / kCount;
  // Of the threads that have a channel.
  const int c = blockIdx.x * kCount + threadIdx.x % kCount;
  const float own_weight = weight == nullptr ? 1.0f : weight[c];
  const double invstd = parameters[channels + c];
  float mean[kCount];
  float scale[kCount];
  float shift[kCount];
  read_channels<kCount>(parameters, blockIdx.x, mean);
  read_channels<kCount>(parameters + 2 * channels, blockIdx.x, scale);
  read_channels<kCount>(parameters + 3 * channels, blockIdx.x, shift);
  float sum[kCount] = {};
  float product[kCount] = {};
#pragma unroll 2
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const Long at = Long(row) * packs + blockIdx.x;
    float g[kCount];
    float number[kCount];
    passed<Type>(grad, x, output, at, scale, shift, has_relu, g, number);
    if (kept != nullptr) {
      write<Type>(kept, at, g);
    }
    for (int i = 0; i < kCount; ++i) {
      sum[i] += g[i];
      product[i] += g[i] * (number[i] - mean[i]);
    }
  }
  double all;
  double all_products;
  add_up_all<kCount>(sum, product, &all, &all_products);
  if (threadIdx.x < kCount) {
    write_gradients(
        all, all_products, rows, own_weight, invstd, c, of_weight, of_bias,
        &factors[0][threadIdx.x], kCount);
  }
  __syncthreads();
  if (result == nullptr) {
    return;
  }
#pragma unroll 2
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    const Long at = Long(row) * packs + blockIdx.x;
    float g[kCount];
    float number[kCount];
    passed<Type>(grad, x, output, at, scale, shift, has_relu, g, number);
    input_gradient<kCount>(
        factors[0], factors[1], factors[2], number, mean, g);
    write<Type>(result, at, g);
  }
}

#define LOCKSTEP_SMALL_KERNELS(Type)                                          \
  extern "C" __global__ void __launch_bounds__(kLines)                        \
      normalise_at_once_##Type(                                               \
          const void* x, const void* addend, int rows, int channels,          \
          const float* weight, const float* bias, double eps,                 \
          double momentum, float* running_mean, float* running_var,           \
          int has_relu, float* parameters, void* y) {                         \
    normalise_at_once<Type>(                                                  \
        x, addend, rows, channels, weight, bias, eps, momentum, running_mean, \
        running_var, has_relu, parameters, y);                                \
  }                                                                           \
  extern "C" __global__ void __launch_bounds__(kLines)                        \
      gradients_at_once_##Type(                                               \
          const void* grad, const void* x, const void* output, int rows,      \
          int channels, const float* weight, const float* parameters,         \
          int has_relu, void* kept, float* of_weight, float* of_bias,         \
          void* result) {                                                     \
    gradients_at_once<Type>(                                                  \
        grad, x, output, rows, channels, weight, parameters, has_relu, kept,  \
        of_weight, of_bias, result);                                          \
  }

LOCKSTEP_SMALL_KERNELS(Float32)
LOCKSTEP_SMALL_KERNELS(Bfloat16)
)cuda";

} // namespace lockstep::kernels
