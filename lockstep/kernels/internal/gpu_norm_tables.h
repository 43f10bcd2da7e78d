// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation of large tables, in CUDA C++: blocks add up parts of the
// rows, a second kernel adds up the blocks, and a third computes the result.
#pragma once

#include <string_view>

namespace lockstep::kernels {

inline constexpr std::string_view kGpuNormTables = R"cuda(
// A batch is a table of `rows` rows with a column for each channel. A thread
// looks at sixteen bytes of a row, some neighbouring channels, then at those of
// the row that is blockDim.y further down. blockIdx.x chooses the channels of a
// block, blockIdx.y its rows.

// What of the table a thread looks at.
struct Place {
  int packs;   // of a row
  int pack;    // this thread's
  Long begin;  // the block's first row
  Long end;
  Long first;  // this thread's
  Long step;

  __device__ Place(Long rows, Long rows_per_block, int channels, int count) {
    packs = channels / count;
    pack = blockIdx.x * blockDim.x + threadIdx.x;
    begin = blockIdx.y * rows_per_block;
    end = begin + rows_per_block < rows ? begin + rows_per_block : rows;
    first = begin + threadIdx.y;
    step = blockDim.y;
  }
  __device__ bool is_inside() const { return pack < packs; }
  __device__ Long at(Long row) const { return row * packs + pack; }
  // Whose sums this thread gets of `add_up`; none: a number too large.
  __device__ int channel(int count) const {
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    return thread < blockDim.x * count ? blockIdx.x * blockDim.x * count + thread
                                       : 1 << 30;
  }
};

constexpr int kWarps = 8;

// Adds up two numbers of each channel over the threads of a block that have the
// same channels. Thread t of the block gets the sums of the t-th channel of the
// block, if there is one. One order of additions.
template <int kCount>
__device__ void add_up(
    float* first, float* second, float (*shared)[2][kWarp * kCount],
    double* sum_of_first, double* sum_of_second) {
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int lanes = blockDim.x;
  for (int i = 0; i < kCount; ++i) {
    for (int offset = kWarp / 2; offset >= lanes; offset /= 2) {
      first[i] += __shfl_xor_sync(0xffffffffu, first[i], offset);
      second[i] += __shfl_xor_sync(0xffffffffu, second[i], offset);
    }
  }
  if (thread % kWarp < lanes) {
    for (int i = 0; i < kCount; ++i) {
      shared[thread / kWarp][0][threadIdx.x * kCount + i] = first[i];
      shared[thread / kWarp][1][threadIdx.x * kCount + i] = second[i];
    }
  }
  __syncthreads();
  *sum_of_first = 0;
  *sum_of_second = 0;
  if (thread < lanes * kCount) {
    for (int warp = 0; warp < kWarps; ++warp) {
      *sum_of_first += shared[warp][0][thread];
      *sum_of_second += shared[warp][1][thread];
    }
  }
}

// Of the rows of each block: the mean, and the sum of the squares of the
// distances from it. Distances from the first row's number lose nothing where a
// channel's numbers are large and close to each other.
template <class Type>
__device__ void moments(
    const void* __restrict__ x, Long rows, Long rows_per_block, int channels,
    float* __restrict__ means, float* __restrict__ squares) {
  constexpr int kCount = Type::kCount;
  __shared__ float shared[kWarps][2][kWarp * kCount];
  const Place place(rows, rows_per_block, channels, kCount);
  float base[kCount] = {};
  float sum[kCount] = {};
  float square[kCount] = {};
  if (place.is_inside()) {
    read<Type>(x, place.at(place.begin), base);
#pragma unroll 4
    for (Long row = place.first; row < place.end; row += place.step) {
      float number[kCount];
      read<Type>(x, place.at(row), number);
      for (int i = 0; i < kCount; ++i) {
        const float distance = number[i] - base[i];
        sum[i] += distance;
        square[i] += distance * distance;
      }
    }
  }
  double all;
  double all_squares;
  add_up<kCount>(sum, square, shared, &all, &all_squares);
  if (const int c = place.channel(kCount); c < channels) {
    const float first = number_at<Type>(x, place.begin * channels + c);
    const double count = place.end - place.begin;
    means[blockIdx.y * channels + c] = first + all / count;
    squares[blockIdx.y * channels + c] = all_squares - all * (all / count);
  }
}

// y = relu(x * scale + shift + addend), or without what is not there.
template <class Type>
__device__ void normalise(
    const void* __restrict__ x, const void* __restrict__ addend, Long rows,
    Long rows_per_block, int channels, const float* __restrict__ parameters,
    int has_relu, void* __restrict__ y) {
  constexpr int kCount = Type::kCount;
  const Place place(rows, rows_per_block, channels, kCount);
  if (!place.is_inside()) {
    return;
  }
  float scale[kCount];
  float shift[kCount];
  read_channels<kCount>(parameters + 2 * channels, place.pack, scale);
  read_channels<kCount>(parameters + 3 * channels, place.pack, shift);
#pragma unroll 2
  for (Long row = place.first; row < place.end; row += place.step) {
    float number[kCount];
    float added[kCount] = {};
    read<Type>(x, place.at(row), number);
    if (addend != nullptr) {
      read<Type>(addend, place.at(row), added);
    }
    result_of<kCount>(scale, shift, added, has_relu, number);
    write<Type>(y, place.at(row), number);
  }
}

// Of the rows of each block: the sums of g and of g (x - mean). With `output`
// what has passed the ReLU is kept: it is the addend's gradient.
template <class Type>
__device__ void gradient_sums(
    const void* __restrict__ grad, const void* __restrict__ x,
    const void* __restrict__ output, Long rows, Long rows_per_block,
    int channels, const float* __restrict__ parameters, int has_relu,
    void* __restrict__ kept, float* __restrict__ sums,
    float* __restrict__ products) {
  constexpr int kCount = Type::kCount;
  __shared__ float shared[kWarps][2][kWarp * kCount];
  const Place place(rows, rows_per_block, channels, kCount);
  float sum[kCount] = {};
  float product[kCount] = {};
  if (place.is_inside()) {
    float mean[kCount];
    float scale[kCount];
    float shift[kCount];
    read_channels<kCount>(parameters, place.pack, mean);
    read_channels<kCount>(parameters + 2 * channels, place.pack, scale);
    read_channels<kCount>(parameters + 3 * channels, place.pack, shift);
#pragma unroll 2
    for (Long row = place.first; row < place.end; row += place.step) {
      float g[kCount];
      float number[kCount];
      passed<Type>(
          grad, x, output, place.at(row), scale, shift, has_relu, g, number);
      if (kept != nullptr) {
        write<Type>(kept, place.at(row), g);
      }
      for (int i = 0; i < kCount; ++i) {
        sum[i] += g[i];
        product[i] += g[i] * (number[i] - mean[i]);
      }
    }
  }
  double all;
  double all_products;
  add_up<kCount>(sum, product, shared, &all, &all_products);
  if (const int c = place.channel(kCount); c < channels) {
    sums[blockIdx.y * channels + c] = all;
    products[blockIdx.y * channels + c] = all_products;
  }
}

// The gradient of x: g * factors[0] + (x - mean) * factors[1] + factors[2].
template <class Type>
__device__ void gradient(
    const void* __restrict__ grad, const void* __restrict__ x, Long rows,
    Long rows_per_block, int channels, const float* __restrict__ parameters,
    const float* __restrict__ factors, int has_mask,
    void* __restrict__ result) {
  constexpr int kCount = Type::kCount;
  const Place place(rows, rows_per_block, channels, kCount);
  if (!place.is_inside()) {
    return;
  }
  float mean[kCount];
  float scale[kCount];
  float shift[kCount];
  float by_grad[kCount];
  float by_distance[kCount];
  float constant[kCount];
  read_channels<kCount>(parameters, place.pack, mean);
  read_channels<kCount>(parameters + 2 * channels, place.pack, scale);
  read_channels<kCount>(parameters + 3 * channels, place.pack, shift);
  read_channels<kCount>(factors, place.pack, by_grad);
  read_channels<kCount>(factors + channels, place.pack, by_distance);
  read_channels<kCount>(factors + 2 * channels, place.pack, constant);
#pragma unroll 2
  for (Long row = place.first; row < place.end; row += place.step) {
    float g[kCount];
    float number[kCount];
    passed<Type>(
        grad, x, nullptr, place.at(row), scale, shift, has_mask, g, number);
    input_gradient<kCount>(by_grad, by_distance, constant, number, mean, g);
    write<Type>(result, place.at(row), g);
  }
}

// Blocks of these have a warp for each of some channels, which adds up what the
// blocks before have for it: a lane takes every 32nd.
__device__ double total(double own) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    own += __shfl_xor_sync(0xffffffffu, own, offset);
  }
  return own;
}

extern "C" __global__ void finish_moments(
    const float* __restrict__ means, const float* __restrict__ squares,
    int blocks, Long rows, int rows_per_block, int channels,
    const float* weight, const float* bias, double eps, double momentum,
    float* running_mean, float* running_var, float* __restrict__ parameters) {
  const int c = blockIdx.x * blockDim.y + threadIdx.y;
  if (c >= channels) {
    return;
  }
  const Channel channel(c, weight, bias, running_mean, running_var);
  const double base = means[c];
  const int last = rows - Long(blocks - 1) * rows_per_block;
  double sum = 0;
  double square = 0;
#pragma unroll 4
  for (int block = threadIdx.x; block < blocks; block += kWarp) {
    const double count = block + 1 < blocks ? rows_per_block : last;
    const double distance = means[block * channels + c] - base;
    sum += count * distance;
    square += squares[block * channels + c] + count * distance * distance;
  }
  const double distance = total(sum) / rows; // of the mean from the base
  const double variance =
      not_negative(total(square) / rows - distance * distance);
  if (threadIdx.x == 0) {
    const double mean = base + distance;
    move(channel, mean, variance, rows, momentum, c, running_mean, running_var);
    write_parameters(channel, mean, variance, eps, channels, c, parameters);
  }
}

extern "C" __global__ void use_running(
    const float* running_mean, const float* running_var, int channels,
    const float* weight, const float* bias, double eps, float* parameters) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < channels) {
    const Channel channel(c, weight, bias, running_mean, running_var);
    write_parameters(
        channel, channel.running_mean, channel.running_var, eps, channels, c,
        parameters);
  }
}

extern "C" __global__ void finish_gradients(
    const float* __restrict__ sums, const float* __restrict__ products,
    int blocks, Long rows, int channels, const float* weight,
    const float* parameters, float* of_weight, float* of_bias,
    float* factors) {
  const int c = blockIdx.x * blockDim.y + threadIdx.y;
  if (c >= channels) {
    return;
  }
  const float own_weight = weight == nullptr ? 1.0f : weight[c];
  const double invstd = parameters[channels + c];
  double sum = 0;
  double product = 0;
#pragma unroll 4
  for (int block = threadIdx.x; block < blocks; block += kWarp) {
    sum += sums[block * channels + c];
    product += products[block * channels + c];
  }
  sum = total(sum);
  product = total(product);
  if (threadIdx.x == 0) {
    write_gradients(
        sum, product, rows, own_weight, invstd, c, of_weight, of_bias,
        factors + c, channels);
  }
}

#define LOCKSTEP_TABLE_KERNELS(Type)                                                \
  extern "C" __global__ void moments_##Type(                                  \
      const void* x, Long rows, Long rows_per_block, int channels,            \
      float* means, float* squares) {                                         \
    moments<Type>(x, rows, rows_per_block, channels, means, squares);         \
  }                                                                           \
  extern "C" __global__ void normalise_##Type(                                \
      const void* x, const void* addend, Long rows, Long rows_per_block,      \
      int channels, const float* parameters, int has_relu, void* y) {         \
    normalise<Type>(                                                          \
        x, addend, rows, rows_per_block, channels, parameters, has_relu, y);  \
  }                                                                           \
  extern "C" __global__ void gradient_sums_##Type(                            \
      const void* grad, const void* x, const void* output, Long rows,         \
      Long rows_per_block, int channels, const float* parameters,             \
      int has_relu, void* kept, float* sums, float* products) {               \
    gradient_sums<Type>(                                                      \
        grad, x, output, rows, rows_per_block, channels, parameters,          \
        has_relu, kept, sums, products);                                      \
  }                                                                           \
  extern "C" __global__ void gradient_##Type(                                 \
      const void* grad, const void* x, Long rows, Long rows_per_block,        \
      int channels, const float* parameters, const float* factors,            \
      int has_mask, void* result) {                                           \
    gradient<Type>(                                                           \
        grad, x, rows, rows_per_block, channels, parameters, factors,         \
        has_mask, result);                                                    \
  }

LOCKSTEP_TABLE_KERNELS(Float32)
LOCKSTEP_TABLE_KERNELS(Bfloat16)
)cuda";

} // namespace lockstep::kernels
