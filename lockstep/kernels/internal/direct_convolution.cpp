// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/direct_convolution.h"

#include <algorithm>

#include <ATen/ceil_div.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>

#include "lockstep/kernels/internal/convolution_tensors.h"
#include "lockstep/kernels/internal/direct_loops.h"
#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep::kernels {
namespace {

using at::ceil_div;
using at::MemoryFormat;
using at::Tensor;

constexpr std::int64_t kMaxPositions = 64;
// Below these LibTorch's kernels are good enough, and above this panel. Columns
// of a panel: two vectors of AVX2.
constexpr std::int64_t kMinDirectBatch = 4;
constexpr std::int64_t kMinBatchOfTinyMaps = 8; // forward, float32
constexpr std::int64_t kMinDirectChannels = 64;
constexpr std::int64_t kMinDirectPanel = 16;

Tensor empty_map(at::IntArrayRef sizes, const Tensor& like) {
  return at::empty(
      sizes,
      like.options().memory_format(MemoryFormat::ChannelsLast));
}

// Never asked for as memory that may change: a lazy copy would be made.
template <class Number>
const Stored<Number>* numbers_of(const Tensor& tensor) {
  return static_cast<const Stored<Number>*>(tensor.const_data_ptr());
}

// The sums of a map; `bias`: float32, or undefined.
template <class Number>
void convolve_map(
    const Tensor& from,
    const Tensor& weight,
    const Terms& terms,
    const Tensor& bias,
    bool is_forward,
    const Tensor& to) {
  const auto packed = pack_taps<Number>(
      weight,
      used_taps(terms, weight.size(2) * weight.size(3)),
      is_forward);
  convolve(
      DirectSums<Number>{
          .terms = terms,
          .weight = packed,
          .from = numbers_of<Number>(from),
          .from_positions = from.size(2) * from.size(3),
          .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
          .to = static_cast<Stored<Number>*>(to.mutable_data_ptr())},
      from.size(0));
}

// [position, image, channels].
Tensor by_position(const Tensor& map) {
  return map.permute({2, 3, 0, 1}).flatten(0, 1);
}

// [position, pair of images, channels].
Tensor paired_by_position(const Tensor& map) {
  const std::int64_t positions = map.size(2) * map.size(3);
  Tensor pairs = at::empty(
      {positions, ceil_div(map.size(0), std::int64_t{2}), map.size(1)},
      at::kInt);
  pair_images(
      numbers_of<Pair>(map),
      map.size(0),
      positions,
      map.size(1),
      static_cast<Pair*>(pairs.mutable_data_ptr()));
  return pairs;
}

template <class Number>
MapRows<Number> rows_of(const Tensor& ordered) {
  return {
      .first = static_cast<const Number*>(ordered.const_data_ptr()),
      .position_step = ordered.stride(0),
      .image_step = ordered.stride(1)};
}

// `input`, `grads`: by position.
template <class Number>
void sum_gradient(
    const Tensor& input,
    const Tensor& grads,
    const Terms& terms,
    const Tensor& gradient) {
  compute_gradient(DirectGradient<Number>{
      .terms = terms,
      .grads = rows_of<Number>(grads),
      .input = rows_of<Number>(input),
      .batch = input.size(1),
      .taps = gradient.size(2) * gradient.size(3),
      .out = gradient.size(0),
      .in = gradient.size(1),
      .to = gradient.mutable_data_ptr<float>()});
}

} // namespace

std::optional<DirectConvolution> DirectConvolution::of(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  if (!is_a_batch(input) || !is_a_batch(weight) ||
      input.scalar_type() != weight.scalar_type() ||
      (input.scalar_type() == at::kBFloat16 && pair_loops() == nullptr) ||
      input.size(1) != weight.size(1) || input.size(1) % kChannelStep != 0 ||
      weight.size(0) % kChannelStep != 0 || !are_valid(steps) ||
      input.size(2) * input.size(3) > kMaxPositions ||
      !at::native::mkldnn_conv_use_channels_last(input, weight)) {
    return std::nullopt;
  }
  const DirectConvolution found(input, weight, steps);
  // Each by itself first: their product may not be a number.
  const auto are_few = [](std::int64_t count) {
    return count > 0 && count <= kMaxPositions;
  };
  return are_few(found.down_.outputs) && are_few(found.across_.outputs) &&
                 are_few(found.down_.outputs * found.across_.outputs)
             ? std::optional(found)
             : std::nullopt;
}

DirectConvolution::DirectConvolution(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps)
    : ConvolutionAlgorithm(input, weight),
      down_(input.size(2), weight.size(2), steps, 0),
      across_(input.size(3), weight.size(3), steps, 1),
      is_strided_(std::max(steps.stride.front(), steps.stride.back()) > 1) {}

bool DirectConvolution::is_better(Pass pass) const {
  if (product_loops().panel < kMinDirectPanel || batch() < kMinDirectBatch ||
      std::min(in(), out()) < kMinDirectChannels) {
    return false;
  }
  if (is_half() && bfloat16_products() == Bfloat16Products::kTiles) {
    return false; // with which LibTorch's kernels multiply
  }
  const std::int64_t outputs = down_.outputs * across_.outputs;
  if (is_half() && outputs == 1) {
    return false; // a product of LibTorch's is as fast (convolution_products.h)
  }
  const bool is_one_tap = down_.taps * across_.taps == 1;
  // One product of the whole map, which LibTorch's kernel does as well.
  const bool is_plain = is_one_tap && !is_strided_;
  const bool is_tiny = outputs == 1 || (outputs <= 4 && !is_plain);
  switch (pass) {
    case Pass::kForward:
      return outputs == 1 || (is_one_tap && is_strided_) ||
             (is_tiny && (is_half() || batch() >= kMinBatchOfTinyMaps));
    case Pass::kInputGradient:
      return is_tiny || is_strided_;
    case Pass::kWeightGradient:
      return outputs <= 4 || !is_plain;
  }
  return false;
}

std::array<std::int64_t, 4> DirectConvolution::output_sizes() const {
  return {batch(), out(), down_.outputs, across_.outputs};
}

Tensor DirectConvolution::sums_of(
    const Tensor& map,
    const Terms& terms,
    const Tensor& bias,
    bool is_forward,
    at::IntArrayRef sizes) const {
  const Tensor from = channels_last(map);
  const Tensor biases =
      bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  Tensor to = empty_map(sizes, from);
  const auto add_up = is_half() ? &convolve_map<Pair> : &convolve_map<float>;
  add_up(from, weight(), terms, biases, is_forward, to);
  return to;
}

Tensor DirectConvolution::forward(const Tensor& bias) const {
  return sums_of(
      input(),
      terms_of_outputs(TapTable(down_, across_)),
      bias,
      true,
      output_sizes());
}

Tensor DirectConvolution::input_gradient(const Tensor& grad_output) const {
  return sums_of(
      grad_output,
      terms_of_pixels(TapTable(down_, across_)),
      {},
      false,
      input().sizes());
}

Tensor DirectConvolution::weight_gradient(const Tensor& grad_output) const {
  const Terms terms = terms_of_outputs(TapTable(down_, across_));
  const Tensor from = channels_last(input());
  const Tensor grads = channels_last(grad_output);
  Tensor gradient = at::empty(
      weight().sizes(),
      from.options()
          .dtype(at::kFloat)
          .memory_format(MemoryFormat::ChannelsLast));
  const auto ordered = is_half() ? &paired_by_position : &by_position;
  const auto add_up = is_half() ? &sum_gradient<Pair> : &sum_gradient<float>;
  add_up(ordered(from), ordered(grads), terms, gradient);
  return gradient.to(weight().scalar_type());
}

} // namespace lockstep::kernels
