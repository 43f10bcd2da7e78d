// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_products.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "lockstep/kernels/internal/convolution_tensors.h"
#include "lockstep/kernels/internal/matrix_product.h"
#include "lockstep/kernels/internal/packed_weight.h"

namespace lockstep::kernels {
namespace {

using at::MemoryFormat;
using at::Tensor;

constexpr std::int64_t kMaxOutputs = 16;
constexpr std::int64_t kMaxPixels = 64;
// Below these LibTorch's kernels are good enough, or in float32 more exact; in
// bfloat16 they are neither where a map has one output.
constexpr std::int64_t kMinProductBatch = 32;
constexpr std::int64_t kMinHalfBatchOfOneOutput = 2;
constexpr std::int64_t kMinProductChannels = 64;
// What a thread needs of a batch to pay for a weight that is packed for all
// outputs, and for several products with a part of it each. Packing is the work
// of one thread.
constexpr std::int64_t kMinDenseShare = 64;
constexpr std::int64_t kMinShrinkingShare = 128;
// Weights whose gradient no cache holds. Units: numbers.
constexpr std::int64_t kLargeWeight = 1 << 20;

using Positions = std::vector<std::int64_t>;

// [n, c, h, w] as [n, positions * c] if channels are last, else
// [n, c * positions]; the same memory if these are all positions.
Tensor
columns_of(const Tensor& map, const Positions& positions, MemoryFormat layout) {
  const bool is_channels_last = layout == MemoryFormat::ChannelsLast;
  const Tensor packed = map.contiguous(layout);
  const Tensor lines = is_channels_last
                           ? packed.permute({0, 2, 3, 1}).flatten(1, 2)
                           : packed.flatten(2);
  const std::int64_t direction = is_channels_last ? 1 : 2;
  if (lines.size(direction) == static_cast<std::int64_t>(positions.size())) {
    return lines.flatten(1);
  }
  return lines.index_select(direction, at::tensor(positions)).flatten(1);
}

// The way back, for all positions.
Tensor
map_of(const Tensor& columns, at::IntArrayRef sizes, MemoryFormat layout) {
  return layout == MemoryFormat::ChannelsLast
             ? columns.view({sizes[0], sizes[2], sizes[3], sizes[1]})
                   .permute({0, 3, 1, 2})
             : columns.view(sizes);
}

// The way back into some positions of a map.
void put_columns(
    const Tensor& map,
    const Positions& positions,
    const Tensor& columns,
    MemoryFormat layout) {
  const auto length = static_cast<std::int64_t>(positions.size());
  if (layout == MemoryFormat::ChannelsLast) {
    map.permute({0, 2, 3, 1})
        .flatten(1, 2)
        .index_copy_(
            1,
            at::tensor(positions),
            columns.view({map.size(0), length, map.size(1)}));
  } else {
    map.flatten(2).index_copy_(
        2,
        at::tensor(positions),
        columns.view({map.size(0), map.size(1), length}));
  }
}

// A bias for each of some positions.
Tensor
repeated(const Tensor& bias, std::size_t positions, MemoryFormat layout) {
  const auto count = static_cast<std::int64_t>(positions);
  return layout == MemoryFormat::ChannelsLast
             ? bias.repeat({count})
             : bias.unsqueeze(1).expand({-1, count}).flatten();
}

// Of outputs and of the input's gradient.
Sums sums_as_libtorch(MemoryFormat layout) {
  return layout == MemoryFormat::ChannelsLast ? Sums::kInOneChain
                                              : Sums::kInBlocks;
}

// [n, c, h, w] as [h * w, n, c].
Tensor copied_by_position(const Tensor& map) {
  return map.permute({2, 3, 0, 1}).contiguous().flatten(0, 1);
}

// What the images of some runs have, below each other: [images, c].
Tensor rows_of(
    const Tensor& positions,
    const std::vector<TapRun>& runs,
    std::int64_t TapRun::*first) {
  std::vector<Tensor> parts;
  parts.reserve(runs.size());
  for (const TapRun& run : runs) {
    parts.push_back(positions.narrow(0, run.*first, run.length).flatten(0, 1));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts);
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
  return found.outputs() >= 1 && found.outputs() <= kMaxOutputs &&
                 found.pixels() <= kMaxPixels
             ? std::optional(found)
             : std::nullopt;
}

ConvolutionProducts::ConvolutionProducts(
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps)
    : ConvolutionAlgorithm(input, weight),
      layout_(
          at::native::mkldnn_conv_use_channels_last(input, weight)
              ? MemoryFormat::ChannelsLast
              : MemoryFormat::Contiguous),
      down_(input.size(2), weight.size(2), steps, 0),
      across_(input.size(3), weight.size(3), steps, 1),
      is_dilated_(std::max(steps.dilation.front(), steps.dilation.back()) > 1) {
}

bool ConvolutionProducts::is_better(Pass pass) const {
  const bool is_half = weight().scalar_type() == at::kBFloat16;
  const std::int64_t min_batch =
      is_half && outputs() == 1 ? kMinHalfBatchOfOneOutput : kMinProductBatch;
  if (batch() < min_batch || std::min(in(), out()) < kMinProductChannels ||
      is_dilated_ || !(is_half || products_are_as_precise())) {
    return false;
  }
  // bfloat16 products are so fast that packing the weight tap by tap, or many
  // products for one map, are what counts.
  const bool is_one_tap = weight().size(2) * weight().size(3) == 1;
  const std::int64_t share = batch() / at::get_num_threads();
  const bool is_dense = outputs() <= 4 && down_.is_dense() &&
                        across_.is_dense() && share >= kMinDenseShare &&
                        !(is_half && layout_ == MemoryFormat::Contiguous);
  switch (pass) {
    case Pass::kForward:
      return outputs() == 1 || is_dense;
    case Pass::kInputGradient: // also where the map shrinks
      return outputs() == 1 || is_dense ||
             (outputs() <= 4 && pixels() > 2 * outputs() &&
              share >= kMinShrinkingShare && (is_one_tap || !is_half));
    case Pass::kWeightGradient:
      return outputs() == 1 ||
             (!is_one_tap &&
              (outputs() <= 4 || weight().numel() >= kLargeWeight));
  }
  return false;
}

std::array<std::int64_t, 4> ConvolutionProducts::output_sizes() const {
  return {batch(), out(), down_.outputs, across_.outputs};
}

Tensor ConvolutionProducts::forward(const Tensor& bias) const {
  const TapTable taps(down_, across_);
  const auto sizes = output_sizes();
  const auto product = [&](const Meeting& meeting) {
    return matrix_product(
        columns_of(input(), meeting.pixels, layout_),
        pack_weight(weight(), meeting, taps, layout_).t(),
        sums_as_libtorch(layout_),
        bias.defined() ? repeated(bias, meeting.outputs.size(), layout_)
                       : bias);
  };
  const auto meetings = taps.meetings_of_outputs();
  if (meetings.size() == 1 && std::ssize(meetings[0].outputs) == outputs()) {
    return map_of(product(meetings[0]), sizes, layout_);
  }
  Tensor output = at::empty(sizes, input().options().memory_format(layout_));
  if (bias.defined()) { // for outputs that see no pixel
    output.copy_(bias.view({-1, 1, 1}));
  } else {
    output.zero_();
  }
  for (const Meeting& meeting : meetings) {
    put_columns(output, meeting.outputs, product(meeting), layout_);
  }
  return output;
}

Tensor ConvolutionProducts::input_gradient(const Tensor& grad_output) const {
  const TapTable taps(down_, across_);
  const auto product = [&](const Meeting& meeting) {
    return matrix_product(
        columns_of(grad_output, meeting.outputs, layout_),
        pack_weight(weight(), meeting, taps, layout_),
        sums_as_libtorch(layout_));
  };
  const auto meetings = taps.meetings_of_pixels();
  if (meetings.size() == 1 && std::ssize(meetings[0].pixels) == pixels()) {
    return map_of(product(meetings[0]), input().sizes(), layout_);
  }
  Tensor gradient =
      at::empty(input().sizes(), input().options().memory_format(layout_));
  gradient.zero_(); // of pixels that no output sees
  for (const Meeting& meeting : meetings) {
    put_columns(gradient, meeting.pixels, product(meeting), layout_);
  }
  return gradient;
}

Tensor ConvolutionProducts::weight_gradient(const Tensor& grad_output) const {
  const auto runs_of_taps = TapTable(down_, across_).runs_of_taps();
  const Tensor grads = copied_by_position(grad_output);
  const Tensor pixels = copied_by_position(input());
  const auto product = [&](const std::vector<TapRun>& runs) {
    return matrix_product(
        rows_of(grads, runs, &TapRun::output).t(),
        rows_of(pixels, runs, &TapRun::pixel),
        Sums::kInOneChain); // as LibTorch's, of any layout
  };
  const bool is_dead =
      std::ranges::any_of(runs_of_taps, &std::vector<TapRun>::empty);
  if (runs_of_taps.size() == 1 && !is_dead) {
    return map_of(product(runs_of_taps[0]), weight().sizes(), layout_);
  }
  Tensor gradient =
      at::empty(weight().sizes(), weight().options().memory_format(layout_));
  if (is_dead) {
    gradient.zero_();
  }
  const Tensor by_tap = gradient.flatten(2).permute({2, 0, 1});
  // Taps beside each other are filled together: the way through memory is one.
  const bool is_staged = !is_dead && layout_ == MemoryFormat::Contiguous;
  const Tensor stage =
      is_staged ? at::empty(by_tap.sizes(), weight().options()) : by_tap;
  for (std::size_t tap = 0; tap < runs_of_taps.size(); ++tap) {
    if (!runs_of_taps[tap].empty()) {
      stage.select(0, static_cast<std::int64_t>(tap))
          .copy_(product(runs_of_taps[tap]));
    }
  }
  if (is_staged) {
    const std::int64_t taps = stage.size(0);
    gradient.view({-1, taps}).copy_(stage.view({taps, -1}).t());
  }
  return gradient;
}

} // namespace lockstep::kernels
