// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/convolution_products.h"

#include <algorithm>
#include <set>

#include <ATen/native/ConvUtils.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/empty.h>

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr std::int64_t kMaxOutputs = 16;
// Below this LibTorch's kernels are good enough.
constexpr std::int64_t kMinProductBatch = 32;
constexpr std::int64_t kMinProductChannels = 64;
// Weights whose gradient no cache holds. Units: numbers.
constexpr std::int64_t kLargeWeight = 1 << 20;

bool is_a_batch(const Tensor& tensor) {
  return tensor.dim() == 4 && tensor.layout() == at::kStrided &&
         tensor.numel() > 0 &&
         (tensor.scalar_type() == at::kFloat ||
          tensor.scalar_type() == at::kBFloat16);
}

// [n, c, h, w] as [n, h * w * c]; the same memory if channels are last there.
Tensor rows_of(const Tensor& tensor) {
  return tensor.permute({0, 2, 3, 1}).contiguous().flatten(1);
}

// The columns of `length` pixels (or taps) from number `begin` on.
Tensor columns(
    const Tensor& rows,
    std::int64_t begin,
    std::int64_t length,
    std::int64_t channels) {
  return rows.narrow(1, begin * channels, length * channels);
}

// sum += a x b. Not through the dispatcher: autocast would round the operands.
void add_product(Tensor sum, const Tensor& a, const Tensor& b) {
  at::cpu::addmm_(sum, a, b);
}

// What LibTorch refuses is left to it.
bool are_valid(const KernelSteps& steps) {
  const auto are_from = [](std::int64_t least, at::IntArrayRef numbers) {
    return (numbers.size() == 1 || numbers.size() == 2) &&
           std::min(numbers.front(), numbers.back()) >= least;
  };
  return are_from(1, steps.stride) && are_from(0, steps.padding) &&
         are_from(1, steps.dilation);
}

} // namespace

std::optional<ConvolutionProducts> ConvolutionProducts::of(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps) {
  if (!is_a_batch(input) || !is_a_batch(weight) ||
      input.scalar_type() != weight.scalar_type() ||
      input.size(1) != weight.size(1) || !are_valid(steps)) {
    return std::nullopt;
  }
  const ConvolutionProducts found(input, weight, steps);
  return found.terms_.empty() ? std::nullopt : std::optional(found);
}

ConvolutionProducts::ConvolutionProducts(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps)
    : input_(input),
      weight_(weight),
      layout_(
          at::native::mkldnn_conv_use_channels_last(input, weight)
              ? at::MemoryFormat::ChannelsLast
              : at::MemoryFormat::Contiguous),
      down_(input.size(2), weight.size(2), steps, 0),
      across_(input.size(3), weight.size(3), steps, 1),
      is_dilated_(std::max(steps.dilation.front(), steps.dilation.back()) > 1) {
  if (down_.outputs * across_.outputs <= kMaxOutputs) {
    terms_ = convolution_terms(down_, across_);
  }
}

bool ConvolutionProducts::are_as_exact(Pass pass) const {
  if (input_.scalar_type() == at::kFloat) {
    return true;
  }
  // Between two terms of one sum a half type is rounded.
  std::set<std::int64_t> sums;
  std::size_t added = 0;
  for (const Term& term : terms_) {
    const std::int64_t length = pass == Pass::kForward ? 1 : term.length;
    const std::int64_t first = pass == Pass::kForward         ? term.output
                               : pass == Pass::kInputGradient ? term.pixel
                                                              : term.tap;
    for (std::int64_t i = 0; i < length; ++i, ++added) {
      sums.insert(first + i);
    }
  }
  return added == sums.size();
}

bool ConvolutionProducts::are_better(Pass pass) const {
  if (input_.size(0) < kMinProductBatch ||
      std::min(in(), out()) < kMinProductChannels || is_dilated_ ||
      !are_as_exact(pass)) {
    return false;
  }
  const std::int64_t outputs = down_.outputs * across_.outputs;
  const std::int64_t pixels = down_.pixels * across_.pixels;
  const bool is_one_tap = weight_.size(2) * weight_.size(3) == 1;
  switch (pass) {
    case Pass::kForward:
      return outputs == 1;
    case Pass::kInputGradient: // also where the map shrinks
      return outputs == 1 || (outputs <= 4 && pixels > 2 * outputs);
    case Pass::kWeightGradient:
      return outputs == 1 ||
             (!is_one_tap && (outputs <= 4 || weight_.numel() >= kLargeWeight));
  }
  return false;
}

bool ConvolutionProducts::take_bias(const Tensor& bias) const {
  return !bias.defined() || (bias.scalar_type() == weight_.scalar_type() &&
                             bias.sizes() == at::IntArrayRef({out()}));
}

bool ConvolutionProducts::take_gradient(const Tensor& grad_output) const {
  return is_a_batch(grad_output) &&
         grad_output.scalar_type() == weight_.scalar_type() &&
         grad_output.sizes() == at::IntArrayRef(output_sizes());
}

std::array<std::int64_t, 4> ConvolutionProducts::output_sizes() const {
  return {input_.size(0), out(), down_.outputs, across_.outputs};
}

Tensor ConvolutionProducts::forward(const Tensor& bias) const {
  const Tensor output = sums_for(output_sizes());
  if (bias.defined()) {
    output.copy_(bias.view({-1, 1, 1}));
  }
  const Tensor sums = rows_of(output);
  const Tensor pixels = rows_of(input_);
  const Tensor weights = rows_of(live_part(weight_));
  for (const Term& term : terms_) {
    add_product(
        columns(sums, term.output, 1, out()),
        columns(pixels, term.pixel, term.length, in()),
        columns(weights, term.tap, term.length, in()).t());
  }
  return in_layout(output);
}

Tensor ConvolutionProducts::input_gradient(const Tensor& grad_output) const {
  const Tensor gradient = sums_for(input_.sizes());
  const Tensor sums = rows_of(gradient);
  const Tensor grads = rows_of(grad_output);
  const Tensor weights = rows_of(live_part(weight_));
  for (const Term& term : terms_) {
    add_product(
        columns(sums, term.pixel, term.length, in()),
        columns(grads, term.output, 1, out()),
        columns(weights, term.tap, term.length, in()));
  }
  return in_layout(gradient);
}

Tensor ConvolutionProducts::weight_gradient(const Tensor& grad_output) const {
  const Tensor live = sums_for(live_part(weight_).sizes());
  const Tensor sums = rows_of(live);
  const Tensor grads = rows_of(grad_output);
  const Tensor pixels = rows_of(input_);
  for (const Term& term : terms_) {
    add_product(
        columns(sums, term.tap, term.length, in()),
        columns(grads, term.output, 1, out()).t(),
        columns(pixels, term.pixel, term.length, in()));
  }
  Tensor gradient =
      at::empty(weight_.sizes(), weight_.options().memory_format(layout_));
  if (live.numel() < gradient.numel()) {
    gradient.zero_();
  }
  live_part(gradient).copy_(live);
  return gradient;
}

// Zero, and with the values of a pixel (or tap) beside each other.
Tensor ConvolutionProducts::sums_for(at::IntArrayRef sizes) const {
  return at::empty(
             sizes,
             input_.options().memory_format(at::MemoryFormat::ChannelsLast))
      .zero_();
}

Tensor ConvolutionProducts::live_part(const Tensor& weight) const {
  return weight.narrow(2, down_.first_tap, down_.live_taps)
      .narrow(3, across_.first_tap, across_.live_taps);
}

Tensor ConvolutionProducts::in_layout(const Tensor& map) const {
  return layout_ == at::MemoryFormat::ChannelsLast
             ? map
             : map.clone(at::MemoryFormat::Contiguous);
}

} // namespace lockstep::kernels
